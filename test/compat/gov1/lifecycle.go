package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"time"

	"github.com/nacos-group/nacos-sdk-go/vo"

	"github.com/rollcall-io/rollcall/test/compat/probe"
)

func (s *suite) registerListDeregister() error {
	c, err := s.client("")
	if err != nil {
		return err
	}
	p := instance("go-plain", 8080, map[string]string{"version": "1"})
	service := probe.Service{Name: "go-plain"}
	if err := s.register(c, p); err != nil {
		return err
	}
	if err := s.Count(soon, service, 1); err != nil {
		return err
	}
	got, err := c.GetService(vo.GetServiceParam{ServiceName: "go-plain"})
	if err != nil || len(got.Hosts) != 1 || got.Hosts[0].Ip != p.Ip || got.Name != "DEFAULT_GROUP@@go-plain" {
		return fmt.Errorf("GetService: %+v, %v", got, err)
	}
	if err := s.deregister(c, p); err != nil {
		return err
	}
	return s.Count(soon, service, 0)
}

func (s *suite) beatsKeepAlive() error {
	c, err := s.client("")
	if err != nil {
		return err
	}
	service := probe.Service{Name: "go-beats"}
	if err := s.register(c, instance("go-beats", 8080, maps.Clone(quick))); err != nil {
		return err
	}
	if err := s.Count(soon, service, 1); err != nil {
		return err
	}
	return s.stays(12*time.Second, service, "healthy", func(h []probe.Host) bool { return len(h) == 1 && h[0].Healthy })
}

// hold is the program of a client that is going to be killed: it registers and stays.
func hold(s *suite) {
	c, err := s.client("")
	if err == nil {
		err = s.register(c, instance("go-killed", 8080, maps.Clone(quick)))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println("registered")
	time.Sleep(time.Minute)
}

// killedClientLeaves has a second instance that lives on: as in Nacos, a service without
// any healthy instance lists all as healthy, since 0 of them reach a threshold of 0.
func (s *suite) killedClientLeaves() error {
	c, err := s.client("")
	if err != nil {
		return err
	}
	if err := s.register(c, instance("go-killed", 1, maps.Clone(quick))); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0], "hold")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	_, err = out.Read(make([]byte, 16)) // its first line
	service := probe.Service{Name: "go-killed"}
	err = errors.Join(err, s.Count(soon, service, 2))
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	if err != nil {
		return err
	}
	// A change of leader may give up to two beats' time more.
	slack := 2 * time.Second
	if s.Unrest {
		slack = 8 * time.Second
	}
	start := time.Now()
	if err := s.Everywhere(3*time.Second+slack, service, "one healthy", func(h []probe.Host) bool { return probe.Healthy(h) == 1 }); err != nil {
		return err
	}
	unhealthy := time.Since(start)
	if err := s.Everywhere(3*time.Second+slack, service, "one", func(h []probe.Host) bool { return len(h) == 1 }); err != nil {
		return err
	}
	probe.Note("killed client: unhealthy after %s, gone after %s", unhealthy.Round(10*time.Millisecond), time.Since(start).Round(10*time.Millisecond))
	if !s.Unrest && unhealthy < 2*time.Second {
		return fmt.Errorf("unhealthy after %s already, the timeout is 3 s", unhealthy)
	}
	return nil
}

func (s *suite) noResurrection() error {
	c, err := s.client("")
	if err != nil {
		return err
	}
	service := probe.Service{Name: "go-gone"}
	for port := 9000; port < 9030; port++ {
		// The client beats as soon as it has registered, so the beat and this
		// deregistration are on their way together.
		p := instance("go-gone", port, maps.Clone(quick))
		if err := s.register(c, p); err != nil {
			return err
		}
		if err := s.deregister(c, p); err != nil {
			return err
		}
	}
	if err := s.Count(soon, service, 0); err != nil {
		return err
	}
	return s.stays(3*quickInterval, service, "empty", func(h []probe.Host) bool { return len(h) == 0 })
}

func (s *suite) returnsAfterRemoval() error {
	c, err := s.client("")
	if err != nil {
		return err
	}
	service := probe.Service{Name: "go-returns"}
	p := instance("go-returns", 8080, maps.Clone(quick))
	p.Weight = 3
	if err := s.register(c, p); err != nil {
		return err
	}
	if err := s.Count(soon, service, 1); err != nil {
		return err
	}
	if err := s.Remove(service, p.Ip, int(p.Port)); err != nil {
		return err
	}
	start := time.Now()
	// Beats count for nothing for two intervals after a removal; the next one counts.
	err = s.Everywhere(3*quickInterval+soon, service, "it again with its weight and metadata", func(h []probe.Host) bool {
		return len(h) == 1 && h[0].Healthy && h[0].Weight == 3 && maps.Equal(h[0].Metadata, quick)
	})
	probe.Note("removed by hand, back after %s", time.Since(start).Round(10*time.Millisecond))
	return err
}

func (s *suite) registerAgain() error {
	c, err := s.client("")
	if err != nil {
		return err
	}
	p := instance("go-again", 8080, maps.Clone(quick))
	for range 5 {
		if err := s.register(c, p); err != nil {
			return err
		}
		if err := s.deregister(c, p); err != nil {
			return err
		}
	}
	if err := s.register(c, p); err != nil {
		return err
	}
	service := probe.Service{Name: "go-again"}
	if err := s.Count(soon, service, 1); err != nil {
		return err
	}
	return s.stays(4*quickInterval, service, "there", func(h []probe.Host) bool { return len(h) == 1 && h[0].Healthy })
}

func (s *suite) persistent() error {
	c, err := s.client("")
	if err != nil {
		return err
	}
	service := probe.Service{Name: "go-persistent"}
	p := instance("go-persistent", 8080, maps.Clone(quick))
	p.Ephemeral = false
	if err := s.register(c, p); err != nil {
		return err
	}
	present := func(h []probe.Host) bool { return len(h) == 1 && !h[0].Ephemeral }
	if err := s.Everywhere(soon, service, "one, persistent", present); err != nil {
		return err
	}
	if err := s.stays(8*time.Second, service, "there", present); err != nil {
		return err
	}
	if err := s.deregister(c, p); err != nil {
		return err
	}
	return s.Count(soon, service, 0)
}
