package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nacos-group/nacos-sdk-go/clients/naming_client"
	"github.com/nacos-group/nacos-sdk-go/common/constant"
	"github.com/nacos-group/nacos-sdk-go/model"
	"github.com/nacos-group/nacos-sdk-go/vo"

	"github.com/rollcall-io/rollcall/test/compat/probe"
)

// callback is one call of a subscription.
type callback struct {
	at    time.Time
	hosts string // "port*weight" of each, sorted; empty for a list without instances
}

// ear is a subscription.
type ear struct {
	client naming_client.INamingClient
	name   string
	told   chan callback
}

// subscribe listens to a service with a client.
func subscribe(c naming_client.INamingClient, name string) (*ear, error) {
	e := &ear{client: c, name: name, told: make(chan callback, 1024)}
	return e, c.Subscribe(&vo.SubscribeParam{ServiceName: name, SubscribeCallback: func(hosts []model.SubscribeService, _ error) {
		var all []string
		for _, h := range hosts {
			all = append(all, fmt.Sprintf("%d*%g", h.Port, h.Weight))
		}
		slices.Sort(all)
		e.told <- callback{time.Now(), strings.Join(all, " ")}
	}})
}

// heard waits for a callback with these instances.
func (e *ear) heard(want string, within time.Duration) (time.Time, error) {
	deadline, last := time.After(within), "nothing"
	for {
		select {
		case c := <-e.told:
			if c.hosts == want {
				return c.at, nil
			}
			last = fmt.Sprintf("%q", c.hosts)
		case <-deadline:
			return time.Time{}, fmt.Errorf("not told %q of %s within %s; told %s last", want, e.name, within, last)
		}
	}
}

// cached counts the instances that the client has in its list.
func (e *ear) cached() int {
	got, err := e.client.SelectAllInstances(vo.SelectAllInstancesParam{ServiceName: e.name})
	if err != nil {
		return -1
	}
	return len(got)
}

// pushable fails unless the list that the client has says that it is pushed to.
func (e *ear) pushable() error {
	got, err := e.client.GetService(vo.GetServiceParam{ServiceName: e.name})
	if err == nil && time.Duration(got.CacheMillis)*time.Millisecond != probe.PollInterval {
		err = fmt.Errorf("the client polls %s every %d ms", e.name, got.CacheMillis)
	}
	return err
}

// comeAndGo makes 3n-1 changes to a service through one client, each heard by ear: n
// instances join those that are there, with their weights, get another weight, and all
// but the last go.
func (s *suite) comeAndGo(r *probe.Series, c naming_client.INamingClient, e *ear, there map[int]float64, n int) error {
	step := func(what string, port int, weight float64, change func(vo.RegisterInstanceParam) error) error {
		if there[port] = weight; weight == 0 {
			delete(there, port)
		}
		var all []string
		for port, weight := range there {
			all = append(all, fmt.Sprintf("%d*%g", port, weight))
		}
		slices.Sort(all)
		p := instance(e.name, port, nil)
		p.Weight = weight
		err := r.Step(func() error { return change(p) },
			func(within time.Duration) (time.Time, error) { return e.heard(strings.Join(all, " "), within) })
		if err != nil {
			return fmt.Errorf("%s %d: %w", what, port, err)
		}
		return nil
	}
	register := func(p vo.RegisterInstanceParam) error { return s.register(c, p) }
	deregister := func(p vo.RegisterInstanceParam) error { return s.deregister(c, p) }
	for port := 1; port <= n; port++ {
		if err := errors.Join(step("registered", port, 1, register), step("weight of", port, 2, register)); err != nil {
			return err
		}
	}
	for port := 1; port < n; port++ {
		if err := step("deregistered", port, 0, deregister); err != nil {
			return err
		}
	}
	return nil
}

// pushed: who asked the first node hears of what is done through the second.
func (s *suite) pushed() error {
	return s.Alone(func() error {
		watcher, err1 := s.newClient(s.Servers[:1], nil)
		changer, err2 := s.newClient(s.Servers[1:2], nil)
		if err := errors.Join(err1, err2); err != nil {
			return err
		}
		e, err := subscribe(watcher, "go-pushed")
		if err != nil {
			return err
		}
		r := &probe.Series{World: s.World, Servers: s.Servers[:1], Acks: 1}
		if err := errors.Join(e.pushable(), s.comeAndGo(r, changer, e, map[int]float64{}, 15)); err != nil {
			return err
		}
		return r.Verdict("subscribed at one node, changed through another")
	})
}

// lastPushed: the empty list is pushed and acknowledged at once, and counts for a client
// that was configured so. The other keeps what it had, until there is something again.
func (s *suite) lastPushed() error {
	return s.Alone(func() error {
		keeps, err1 := s.newClient(s.Servers[:1], nil)
		empties, err2 := s.newClient(s.Servers[:1], func(c *constant.ClientConfig) { c.UpdateCacheWhenEmpty = true })
		changer, err3 := s.newClient(s.Servers[1:2], nil)
		if err := errors.Join(err1, err2, err3); err != nil {
			return err
		}
		k, err1 := subscribe(keeps, "go-last-pushed")
		e, err2 := subscribe(empties, "go-last-pushed")
		if err := errors.Join(err1, err2); err != nil {
			return err
		}
		r := &probe.Series{World: s.World, Servers: s.Servers[:1], Acks: 2}
		first, second := instance(k.name, 1, nil), instance(k.name, 2, nil)
		both := func(want string) func(time.Duration) (time.Time, error) {
			return func(within time.Duration) (time.Time, error) {
				_, err := k.heard(want, within)
				at, err2 := e.heard(want, within)
				return at, errors.Join(err, err2)
			}
		}
		if err := r.Step(func() error { return s.register(changer, first) }, both("1*1")); err != nil {
			return fmt.Errorf("the first came: %w", err)
		}
		err := r.Step(func() error { return s.deregister(changer, first) },
			func(within time.Duration) (time.Time, error) { return e.heard("", within) })
		if err != nil {
			return fmt.Errorf("the last went: %w", err)
		}
		// Both have acknowledged, so both have decided.
		if len(k.told) != 0 || k.cached() != 1 || e.cached() != 0 {
			return fmt.Errorf("the last went: the client that keeps its list was told %d times and has %d, the other has %d", len(k.told), k.cached(), e.cached())
		}
		if err := r.Step(func() error { return s.register(changer, second) }, both("2*1")); err != nil {
			return fmt.Errorf("another came: %w", err)
		}
		return r.Verdict("last instance gone and another come")
	})
}

// askedKilled kills the node that the client asked. This client goes to another with its
// next query; from then on, that one pushes.
func (s *suite) askedKilled() error {
	const name = "go-push-killed"
	watcher, err := s.client("")
	if err != nil {
		return err
	}
	return s.Alone(func() error {
		e, err := subscribe(watcher, name)
		if err != nil {
			return err
		}
		asked, err := s.Subscribed(s.Servers, probe.Service{Name: name})
		if err != nil || len(asked) != 1 {
			return fmt.Errorf("%v push to a client that asked once, %v", asked, err)
		}
		id := fmt.Sprintf("n%d", slices.Index(s.Servers, asked[0])+1)
		left := slices.DeleteFunc(slices.Clone(s.Servers), func(server string) bool { return server == asked[0] })
		if _, err := s.Fault("kill", id); err != nil {
			return err
		}
		err = s.pushedByAnother(e, left)
		start := time.Now()
		_, err2 := s.Fault("start", id)
		probe.Note("%s was ready %s after its start", id, time.Since(start).Round(10*time.Millisecond))
		return errors.Join(err, err2)
	})
}

func (s *suite) pushedByAnother(e *ear, left []string) error {
	changer, err := s.newClient(left[:1], nil)
	if err != nil {
		return err
	}
	killed, first := time.Now(), instance(e.name, 99, nil)
	if err := s.register(changer, first); err != nil {
		return err
	}
	if _, err := e.heard("99*1", unrestPollWithin); err != nil {
		return err
	}
	gap := time.Since(killed)
	var pushing []string
	err = probe.Until(unrestPollWithin, func() bool {
		pushing, err = s.Subscribed(left, probe.Service{Name: e.name})
		return err == nil && len(pushing) > 0
	})
	if err != nil {
		return fmt.Errorf("nobody pushes to the client: %w", err)
	}
	r := &probe.Series{World: s.World, Servers: left, Acks: 1}
	if err := s.comeAndGo(r, changer, e, map[int]float64{99: 1}, 5); err != nil {
		return err
	}
	return r.Verdict(fmt.Sprintf("the node asked was killed, the next change heard after %s, then", gap.Round(10*time.Millisecond)))
}
