package main

import (
	"fmt"
	"maps"
	"math"
	"sync"
	"time"

	"github.com/nacos-group/nacos-sdk-go/clients/naming_client"
	"github.com/nacos-group/nacos-sdk-go/common/constant"
	"github.com/nacos-group/nacos-sdk-go/model"
	"github.com/nacos-group/nacos-sdk-go/vo"

	"github.com/rollcall-io/rollcall/test/compat/probe"
)

// selection registers one instance of each sort: healthy, disabled, without weight.
func (s *suite) selection() error {
	c, err := s.client("")
	if err != nil {
		return err
	}
	good, off, weightless := instance("go-select", 1, nil), instance("go-select", 2, nil), instance("go-select", 3, nil)
	off.Enable, weightless.Weight = false, 0
	for _, p := range []vo.RegisterInstanceParam{good, off, weightless} {
		if err := s.register(c, p); err != nil {
			return err
		}
	}
	// A disabled instance is in nobody's list.
	if err := s.Count(soon, probe.Service{Name: "go-select"}, 2); err != nil {
		return err
	}
	all, err := c.SelectAllInstances(vo.SelectAllInstancesParam{ServiceName: "go-select"})
	if err != nil || len(all) != 2 {
		return fmt.Errorf("all: %+v, %v", all, err)
	}
	healthy, err := c.SelectInstances(vo.SelectInstancesParam{ServiceName: "go-select", HealthyOnly: true})
	if err != nil || len(healthy) != 1 || healthy[0].Port != 1 {
		return fmt.Errorf("healthy: %+v, %v", healthy, err)
	}
	one, err := c.SelectOneHealthyInstance(vo.SelectOneHealthInstanceParam{ServiceName: "go-select"})
	if err != nil || one.Port != 1 {
		return fmt.Errorf("one: %+v, %v", one, err)
	}
	return nil
}

func (s *suite) selectOne() error {
	c, err := s.client("")
	if err != nil {
		return err
	}
	for port, weight := range map[int]float64{1: 1, 2: 3} {
		p := instance("go-weights", port, nil)
		p.Weight = weight
		if err := s.register(c, p); err != nil {
			return err
		}
	}
	if err := s.Count(soon, probe.Service{Name: "go-weights"}, 2); err != nil {
		return err
	}
	const draws = 2000
	heavy := 0
	for range draws {
		one, err := c.SelectOneHealthyInstance(vo.SelectOneHealthInstanceParam{ServiceName: "go-weights"})
		if err != nil {
			return err
		}
		if one.Port == 2 {
			heavy++
		}
	}
	if share := float64(heavy) / draws; math.Abs(share-0.75) > 0.06 {
		return fmt.Errorf("weight 3 of 4 was chosen in %.2f of the draws", share)
	}
	return nil
}

// metadata is sent well escaped by the registration, and not escaped at all by each beat.
func (s *suite) metadata() error {
	c, err := s.client("")
	if err != nil {
		return err
	}
	want := maps.Clone(quick)
	maps.Copy(want, map[string]string{
		"mixed": "a;b%c+d", "amp": "x&y=z", "quote": `he said "no"`, "zone": "Köln/北京", "percent": "50%", "hex": "%41", "empty": "",
	})
	if err := s.register(c, instance("go-metadata", 8080, maps.Clone(want))); err != nil {
		return err
	}
	service := probe.Service{Name: "go-metadata"}
	same := func(h []probe.Host) bool { return len(h) == 1 && h[0].Healthy && maps.Equal(h[0].Metadata, want) }
	if err := s.Everywhere(soon, service, "one with the metadata sent", same); err != nil {
		return err
	}
	if err := s.stays(5*quickInterval, service, "one with the metadata sent", same); err != nil {
		return err
	}
	got, err := c.GetService(vo.GetServiceParam{ServiceName: "go-metadata"})
	if err != nil || len(got.Hosts) != 1 || !maps.Equal(got.Hosts[0].Metadata, want) {
		return fmt.Errorf("the client reads %+v, %v", got.Hosts, err)
	}
	return nil
}

func (s *suite) update() error {
	c, err := s.client("")
	if err != nil {
		return err
	}
	if err := s.register(c, instance("go-update", 8080, maps.Clone(quick))); err != nil {
		return err
	}
	want := maps.Clone(quick)
	want["colour"] = "green"
	err = s.call("update", func() (bool, error) {
		return c.UpdateInstance(vo.UpdateInstanceParam{
			ServiceName: "go-update", Ip: "10.1.0.1", Port: 8080, Weight: 7, Enable: true, Ephemeral: true, Metadata: maps.Clone(want),
		})
	})
	if err != nil {
		return err
	}
	service := probe.Service{Name: "go-update"}
	same := func(h []probe.Host) bool { return len(h) == 1 && h[0].Weight == 7 && maps.Equal(h[0].Metadata, want) }
	if err := s.Everywhere(soon, service, "one with the new weight and metadata", same); err != nil {
		return err
	}
	return s.stays(5*quickInterval, service, "updated", same)
}

// many registers instances of one service, a few at a time as clients of a fleet would.
func (s *suite) many(c naming_client.INamingClient, service string, first, count int, metadata map[string]string) error {
	const atOnce = 16
	var wg sync.WaitGroup
	errs := make(chan error, count)
	slots := make(chan struct{}, atOnce)
	for port := first; port < first+count; port++ {
		wg.Go(func() {
			slots <- struct{}{}
			errs <- s.register(c, instance(service, port, maps.Clone(metadata)))
			<-slots
		})
	}
	wg.Wait()
	close(errs)
	for err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *suite) threeHundred() error {
	c, err := s.client("")
	if err != nil {
		return err
	}
	service := probe.Service{Name: "go-many"}
	if err := s.many(c, service.Name, 10_000, 300, nil); err != nil {
		return err
	}
	if err := s.Count(soon, service, 300); err != nil {
		return err
	}
	list := func() ([]model.Instance, error) {
		return c.SelectInstances(vo.SelectInstancesParam{ServiceName: service.Name, HealthyOnly: true})
	}
	if got, err := list(); err != nil || len(got) != 300 {
		return fmt.Errorf("the client lists %d, %v", len(got), err)
	}
	if err := s.many(c, service.Name, 10_300, 1, nil); err != nil {
		return err
	}
	start := time.Now()
	if err := probe.Until(s.pollWithin(), func() bool { got, err := list(); return err == nil && len(got) == 301 }); err != nil {
		return fmt.Errorf("the 301st in the client's list: %w", err)
	}
	probe.Note("301st of 301 instances seen by the client after %s", time.Since(start).Round(10*time.Millisecond))
	return s.stays(20*time.Second, service, "301 healthy", func(h []probe.Host) bool { return probe.Healthy(h) == 301 })
}

// allGone: whether the last list outlives its instances is the client's setting.
func (s *suite) allGone() error {
	empties, err := s.newClient(s.Servers, func(c *constant.ClientConfig) { c.UpdateCacheWhenEmpty = true })
	if err != nil {
		return err
	}
	keeps, err := s.client("")
	if err != nil {
		return err
	}
	p := instance("go-last", 8080, nil)
	if err := s.register(keeps, p); err != nil {
		return err
	}
	if err := s.Count(soon, probe.Service{Name: "go-last"}, 1); err != nil {
		return err
	}
	count := func(c naming_client.INamingClient) int {
		got, err := c.SelectAllInstances(vo.SelectAllInstancesParam{ServiceName: "go-last"})
		if err != nil {
			return -1
		}
		return len(got)
	}
	if a, b := count(empties), count(keeps); a != 1 || b != 1 {
		return fmt.Errorf("before: %d and %d", a, b)
	}
	if err := s.deregister(keeps, p); err != nil {
		return err
	}
	if err := probe.Until(s.pollWithin(), func() bool { return count(empties) == 0 }); err != nil {
		return fmt.Errorf("the empty list: %w", err)
	}
	if n := count(keeps); n != 1 {
		return fmt.Errorf("the client that keeps its list has %d", n)
	}
	return nil
}
