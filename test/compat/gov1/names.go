package main

import (
	"fmt"
	"slices"
	"time"

	"github.com/nacos-group/nacos-sdk-go/model"
	"github.com/nacos-group/nacos-sdk-go/vo"

	"github.com/rollcall-io/rollcall/test/compat/probe"
)

// apart registers the same service in two namespaces and two groups, each with a port of
// its own, and looks from each side.
func (s *suite) apart() error {
	const name = "go-apart"
	port := 1
	for _, namespace := range []string{"", "dev"} {
		c, err := s.client(namespace)
		if err != nil {
			return err
		}
		for _, group := range []string{"", "G2"} {
			p := instance(name, port, nil)
			p.GroupName = group
			if err := s.register(c, p); err != nil {
				return err
			}
			service := probe.Service{Namespace: namespace, Group: group, Name: name}
			only := func(h []probe.Host) bool { return len(h) == 1 && h[0].Port == port }
			if err := s.Everywhere(soon, service, fmt.Sprintf("only port %d", port), only); err != nil {
				return err
			}
			got, err := c.SelectAllInstances(vo.SelectAllInstancesParam{ServiceName: name, GroupName: group})
			if err != nil || len(got) != 1 || got[0].Port != uint64(port) {
				return fmt.Errorf("%q %q: %+v, %v", namespace, group, got, err)
			}
			// Its beats must not make a second one in another group.
			if err := s.stays(time.Second, service, "alone", only); err != nil {
				return err
			}
			port++
		}
	}
	return nil
}

func (s *suite) clusters() error {
	c, err := s.client("")
	if err != nil {
		return err
	}
	for port, cluster := range []string{"", "east", "west"} {
		p := instance("go-clusters", port+1, nil)
		p.ClusterName = cluster
		if err := s.register(c, p); err != nil {
			return err
		}
	}
	if err := s.Count(soon, probe.Service{Name: "go-clusters"}, 3); err != nil {
		return err
	}
	for _, row := range []struct {
		ask  []string
		want []int
	}{{nil, []int{1, 2, 3}}, {[]string{"DEFAULT"}, []int{1}}, {[]string{"east"}, []int{2}}, {[]string{"east", "west"}, []int{2, 3}}, {[]string{"south"}, nil}} {
		got, err := c.SelectAllInstances(vo.SelectAllInstancesParam{ServiceName: "go-clusters", Clusters: row.ask})
		if ports := portsOf(got); err != nil || !slices.Equal(ports, row.want) {
			return fmt.Errorf("clusters %v: ports %v, want %v, %v", row.ask, ports, row.want, err)
		}
	}
	return nil
}

func portsOf(instances []model.Instance) []int {
	var ports []int
	for _, i := range instances {
		ports = append(ports, int(i.Port))
	}
	slices.Sort(ports)
	return ports
}

func (s *suite) servicePages() error {
	c, err := s.client("pages")
	if err != nil {
		return err
	}
	const services = 25
	for i := range services {
		if err := s.register(c, instance(fmt.Sprintf("go-page-%02d", i), 8080, nil)); err != nil {
			return err
		}
	}
	if err := s.Count(soon, probe.Service{Namespace: "pages", Name: fmt.Sprintf("go-page-%02d", services-1)}, 1); err != nil {
		return err
	}
	seen := make(map[string]bool)
	for page := uint32(1); page <= 3; page++ {
		got, err := c.GetAllServicesInfo(vo.GetAllServiceInfoParam{PageNo: page, PageSize: 10})
		if err != nil || got.Count != services {
			return fmt.Errorf("page %d: %+v, %v", page, got, err)
		}
		for _, name := range got.Doms {
			seen[name] = true
		}
	}
	if len(seen) != services {
		return fmt.Errorf("%d different services on three pages", len(seen))
	}
	return nil
}

// subscription: the client must hear of each change, by a push or by its next poll.
// That it is a push is checked on a cluster that is idle.
func (s *suite) subscription() error {
	c, err := s.client("")
	if err != nil {
		return err
	}
	told := make(chan int, 1024) // instances in each callback
	err = c.Subscribe(&vo.SubscribeParam{ServiceName: "go-watched", SubscribeCallback: func(services []model.SubscribeService, err error) {
		if err == nil {
			told <- len(services)
		}
	}})
	if err != nil {
		return err
	}
	first, second := instance("go-watched", 1, nil), instance("go-watched", 2, nil)
	for _, step := range []struct {
		what string
		do   func() error
		want int
	}{
		{"first registered", func() error { return s.register(c, first) }, 1},
		{"second registered", func() error { return s.register(c, second) }, 2},
		{"first deregistered", func() error { return s.deregister(c, first) }, 1},
		{"first back", func() error { return s.register(c, first) }, 2},
	} {
		if err := step.do(); err != nil {
			return err
		}
		if err := waitFor(told, step.want, s.pollWithin()); err != nil {
			return fmt.Errorf("%s: %w", step.what, err)
		}
	}
	return nil
}

func waitFor(told chan int, want int, within time.Duration) error {
	deadline := time.After(within)
	for {
		select {
		case n := <-told:
			if n == want {
				return nil
			}
		case <-deadline:
			return fmt.Errorf("no callback with %d instances within %s", want, within)
		}
	}
}
