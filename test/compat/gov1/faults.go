package main

import (
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/nacos-group/nacos-sdk-go/clients/naming_client"
	"github.com/nacos-group/nacos-sdk-go/vo"

	"github.com/rollcall-io/rollcall/test/compat/probe"
)

// leaderKilled: none of 200 instances, half of them with short timeouts, may be missing or
// unhealthy on any node at any moment, though the leader dies.
func (s *suite) leaderKilled() error {
	c, err := s.client("")
	if err != nil {
		return err
	}
	service := probe.Service{Name: "go-fleet"}
	if err := s.many(c, service.Name, 20_000, 100, quick); err != nil {
		return err
	}
	if err := s.many(c, service.Name, 20_100, 100, nil); err != nil {
		return err
	}
	if err := s.Count(soon, service, 200); err != nil {
		return err
	}
	return s.Alone(func() error {
		stop := s.Watch(service)
		leader, err := s.Fault("leader", "")
		if err == nil {
			_, err = s.Fault("kill", leader)
		}
		if err == nil {
			err = s.call("register without the old leader", func() (bool, error) {
				return c.RegisterInstance(instance("go-after-kill", 1, nil))
			})
		}
		time.Sleep(12 * time.Second) // two of the short delete timeouts
		if err == nil {
			_, err = s.Fault("start", leader)
		}
		time.Sleep(4 * time.Second)
		fewest, looks := stop()
		if err == nil && fewest < 200 {
			err = fmt.Errorf("a list showed %d healthy instances of 200 (%d looks)", fewest, looks)
		}
		probe.Note("leader %s killed: at least %d healthy in %d looks", leader, fewest, looks)
		return errors.Join(err, s.Count(soon, service, 200))
	})
}

// rollingRestart stops and starts one node after the other, as an upgrade does, while a
// client registers and deregisters without a pause. No call may fail, no instance leave.
func (s *suite) rollingRestart() error {
	c, err := s.client("")
	if err != nil {
		return err
	}
	service := probe.Service{Name: "go-rolling"}
	if err := s.many(c, service.Name, 21_000, 50, quick); err != nil {
		return err
	}
	if err := s.Count(soon, service, 50); err != nil {
		return err
	}
	return s.Alone(func() error {
		watch, load := s.Watch(service), startLoad(c, "go-deploy")
		var err error
		for _, node := range []string{"n1", "n2", "n3"} {
			_, stopErr := s.Fault("stop", node)
			_, startErr := s.Fault("start", node)
			err = errors.Join(err, stopErr, startErr)
			time.Sleep(time.Second)
		}
		err = errors.Join(err, load.stop())
		fewest, looks := watch()
		probe.Note("rolling restart: %d calls, %d failed, the slowest pair took %s; at least %d of 50 healthy in %d looks",
			load.calls, len(load.failures), load.slowest.Round(time.Millisecond), fewest, looks)
		if fewest < 50 {
			err = errors.Join(err, fmt.Errorf("a list showed %d healthy instances of 50", fewest))
		}
		return errors.Join(err, s.Count(soon, probe.Service{Name: "go-deploy"}, 0))
	})
}

// load registers and deregisters one instance after the other. Its fields may be read
// once stop has returned.
type load struct {
	calls    int
	slowest  time.Duration // of a pair of calls
	failures []error

	done chan struct{}
	wg   sync.WaitGroup
}

func startLoad(c naming_client.INamingClient, service string) *load {
	l := &load{done: make(chan struct{})}
	l.wg.Go(func() {
		for port := 1; ; port++ {
			select {
			case <-l.done:
				return
			case <-time.After(50 * time.Millisecond):
			}
			start := time.Now()
			p := instance(service, port, nil)
			_, err := c.RegisterInstance(p)
			if err == nil {
				_, err = c.DeregisterInstance(vo.DeregisterInstanceParam{ServiceName: service, Ip: p.Ip, Port: p.Port, Ephemeral: true})
			}
			if err != nil {
				l.failures = append(l.failures, err)
			}
			l.calls, l.slowest = l.calls+2, max(l.slowest, time.Since(start))
		}
	})
	return l
}

// stop ends the load and reports what failed.
func (l *load) stop() error {
	close(l.done)
	l.wg.Wait()
	if len(l.failures) == 0 {
		return nil
	}
	return fmt.Errorf("%d of %d calls failed, the first: %w", len(l.failures), l.calls, l.failures[0])
}

// noMajority stops two of three nodes. The client that beats meanwhile has an interval of
// its own, which makes this client ask without a pause as long as it gets errors.
func (s *suite) noMajority() error {
	c, err := s.client("")
	if err != nil {
		return err
	}
	service := probe.Service{Name: "go-alone"}
	if err := s.many(c, service.Name, 1, 20, quick); err != nil {
		return err
	}
	if err := s.Count(soon, service, 20); err != nil {
		return err
	}
	return s.Alone(func() error {
		for _, node := range []string{"n1", "n2"} {
			if _, err := s.Fault("stop", node); err != nil {
				return err
			}
		}
		err := errors.Join(s.readsAlone(service.Name), s.writesAlone(c.RegisterInstance))
		time.Sleep(8 * time.Second) // longer than the delete timeout
		err = errors.Join(err, s.readsAlone(service.Name))
		_, err1 := s.Fault("start?wait=no", "n1")
		_, err2 := s.Fault("start", "n2")
		_, err3 := s.Fault("start", "n1")
		if err := errors.Join(err, err1, err2, err3); err != nil {
			return err
		}
		return s.stays(8*time.Second, service, "complete", func(h []probe.Host) bool { return probe.Healthy(h) == 20 })
	})
}

// readsAlone asks the remaining node with a client that has no list yet.
func (s *suite) readsAlone(name string) error {
	c, err := s.newClient(s.Servers[2:], nil)
	if err != nil {
		return err
	}
	got, err := c.SelectAllInstances(vo.SelectAllInstancesParam{ServiceName: name})
	if err != nil || len(got) != 20 {
		return fmt.Errorf("without a majority the client lists %d of 20, %v", len(got), err)
	}
	return nil
}

// writesAlone: each of the client's tries may take the 3 s that a write waits for a
// leader, no longer.
func (s *suite) writesAlone(register func(vo.RegisterInstanceParam) (bool, error)) error {
	start := time.Now()
	done, err := register(instance("go-refused", 1, maps.Clone(quick)))
	if err == nil || done {
		return errors.New("a registration without a majority was acknowledged")
	}
	if took := time.Since(start); took > 8*time.Second {
		return fmt.Errorf("the refusal took %s", took)
	}
	probe.Note("without a majority a registration was refused after %s", time.Since(start).Round(10*time.Millisecond))
	return nil
}
