package client_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/rollcall-io/rollcall/client"
	"github.com/rollcall-io/rollcall/client/fake"
)

func registrar(t *testing.T, c *client.Client, tweak func(*client.RegistrarOptions)) *client.Registrar {
	t.Helper()
	o := client.RegistrarOptions{Registrations: []client.Registration{quick("orders", "10.0.0.1", 80), quick("orders", "10.0.0.1", 81)}}
	if tweak != nil {
		tweak(&o)
	}
	r, err := client.NewRegistrar(c, o)
	must(t, err)
	return r
}

func TestRegistrar_StartAndStopTwiceAndAgain(t *testing.T) {
	s := startFake(t)
	c := newClient(t, nil, s.URL())
	var in, out atomic.Int32
	r := registrar(t, c, func(o *client.RegistrarOptions) {
		o.Registered, o.Deregistered = func(err error) { in.Add(1) }, func(err error) { out.Add(1) }
	})
	for range 2 {
		must(t, r.Start(t.Context()))
		must(t, r.Start(t.Context()))
		if n := len(s.Instances("orders")); n != 2 || !r.Running() {
			t.Fatalf("%d registered, running %v", n, r.Running())
		}
		must(t, r.Stop(t.Context()))
		must(t, r.Stop(t.Context()))
		if n := len(s.Instances("orders")); n != 0 || r.Running() {
			t.Fatalf("%d registered, running %v", n, r.Running())
		}
	}
	if in.Load() != 2 || out.Load() != 2 {
		t.Errorf("hooks were called %d and %d times", in.Load(), out.Load())
	}
}

func TestRegistrar_FailFastOrHealLater(t *testing.T) {
	s := startFake(t)
	c := newClient(t, nil, s.URL())
	s.Fail(http.StatusServiceUnavailable)
	fast := registrar(t, c, func(o *client.RegistrarOptions) { o.FailFast = true })
	if err := fast.Start(shortly(t)); err == nil || fast.Running() {
		t.Fatal("a start without servers succeeded")
	}
	var told error
	later := registrar(t, c, func(o *client.RegistrarOptions) { o.Registered = func(err error) { told = err } })
	must(t, later.Start(shortly(t)))
	if !errors.Is(told, client.ErrPending) {
		t.Errorf("the hook was told %v", told)
	}
	s.Fail(0)
	until(t, "registration in the background", func() bool { return len(s.Instances("orders")) == 2 })
	s.Fail(http.StatusBadRequest)
	refused := registrar(t, c, func(o *client.RegistrarOptions) { o.Registrations = []client.Registration{quick("x", "10.0.0.1", 1)} })
	if err := refused.Start(t.Context()); err == nil {
		t.Error("a refusal for good is no error of Start")
	}
	s.Fail(0)
}

func TestRegistrar_NoTrafficWhileUnhealthy(t *testing.T) {
	s := startFake(t)
	c := newClient(t, nil, s.URL())
	var sick atomic.Bool
	sick.Store(true)
	r := registrar(t, c, func(o *client.RegistrarOptions) {
		o.HealthInterval = 10 * time.Millisecond
		o.Health = func(context.Context) error {
			if sick.Load() {
				return errors.New("not yet")
			}
			return nil
		}
	})
	must(t, r.Start(t.Context()))
	enabled := func(want int) func() bool {
		return func() bool {
			n := 0
			for _, i := range s.Instances("orders") {
				if i.Enabled {
					n++
				}
			}
			return n == want
		}
	}
	if !enabled(0)() {
		t.Fatal("registered for traffic before it was healthy")
	}
	sick.Store(false)
	until(t, "both enabled", enabled(2))
	sick.Store(true)
	until(t, "both disabled", enabled(0))
	must(t, r.Stop(t.Context()))
	if n := len(s.Instances("orders")); n != 0 {
		t.Errorf("%d left", n)
	}
}

// SIGTERM to this very process: gone from the list at once, still serving for the drain
// time, then an orderly end.
func TestListenAndServe_SIGTERM(t *testing.T) {
	s := startFake(t)
	c := newClient(t, nil, s.URL())
	server := &http.Server{Addr: "127.0.0.1:0", Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "hello")
	})}
	const drain = 300 * time.Millisecond
	gone := make(chan time.Time, 1)
	done := make(chan error, 1)
	go func() {
		done <- c.ListenAndServe(context.WithoutCancel(t.Context()), server, client.RegistrarOptions{
			Registrations: []client.Registration{{Service: "hello"}}, Drain: drain,
			Deregistered: func(error) { gone <- time.Now() },
		})
	}()
	until(t, "registration", func() bool { return len(s.Instances("hello")) == 1 })
	i := s.Instances("hello")[0]
	ask := func() error {
		resp, err := http.Get("http://" + addr(i))
		if err == nil {
			resp.Body.Close()
		}
		return err
	}
	must(t, ask())
	must(t, syscall.Kill(os.Getpid(), syscall.SIGTERM))
	left := <-gone
	if n := len(s.Instances("hello")); n != 0 {
		t.Errorf("%d in the list after SIGTERM", n)
	}
	if err := ask(); err != nil && time.Since(left) < drain {
		t.Errorf("not served while it drains: %v", err)
	}
	must(t, <-done)
	if took := time.Since(left); took < drain {
		t.Errorf("it drained for %s, want %s", took, drain)
	}
	http.DefaultClient.CloseIdleConnections()
}

func addr(i fake.Instance) string { return net.JoinHostPort(i.IP, strconv.Itoa(i.Port)) }
