package client_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rollcall-io/rollcall/client"
)

// within fails the test when f takes longer.
func within(t *testing.T, limit time.Duration, what string, f func()) {
	t.Helper()
	begin := time.Now()
	f()
	if took := time.Since(begin); took > limit {
		t.Errorf("%s took %s, want %s at most", what, took.Round(time.Millisecond), limit)
	}
}

// many are registrations of one service.
func many(n int) (all []client.Registration) {
	for i := range n {
		all = append(all, quick("orders", "10.0.0.1", 1000+i))
	}
	return all
}

// A batch used to wait the whole timeout for each sixteen of its items.
func TestRegisterAll_WithoutServersEndsAfterOneTimeout(t *testing.T) {
	s := startFake(t)
	s.Pause()
	c := newClient(t, func(o *client.Options) { o.Timeout = 300 * time.Millisecond }, s.URL())
	within(t, 9*time.Second, "a batch of 1000", func() { // it was 19 s
		if err := c.RegisterAll(context.Background(), many(1000)); !errors.Is(err, client.ErrPending) {
			t.Error(err)
		}
	})
	if n := len(c.Registrations()); n != 1000 {
		t.Errorf("%d are wanted", n)
	}
	must(t, s.Restart())
	until(t, "all of them in the background", func() bool { return len(s.Instances("orders")) == 1000 })
}

// A context that has ended sometimes left an instance out of the table of what is wanted.
func TestRegister_AnEndedContextLeavesItPending(t *testing.T) {
	s := startFake(t)
	c := newClient(t, nil, s.URL())
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for _, r := range many(50) {
		if err := c.Register(ended, r); !errors.Is(err, client.ErrPending) || !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
	}
	until(t, "all of them in the background", func() bool { return len(s.Instances("orders")) == 50 })
}

func TestNames_AllPagesShareOneTimeout(t *testing.T) {
	endless := roundTripper(func(r *http.Request) (*http.Response, error) {
		page := `{"count":1000000000,"doms":["x"` + strings.Repeat(`,"x"`, 499) + `]}`
		return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(page)), Request: r}, nil
	})
	c := newClient(t, func(o *client.Options) { o.Timeout, o.Transport = 200*time.Millisecond, endless }, "127.0.0.1:1")
	within(t, 5*time.Second, "asking for names", func() {
		if _, err := c.ServiceNames(context.Background(), ""); !errors.Is(err, client.ErrUnavailable) {
			t.Error(err)
		}
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// What a proxy in between says with a 200 is no list, no names and no status.
func TestAnswers_ThatCannotBeReadAreErrUnavailable(t *testing.T) {
	portal := roundTripper(func(r *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader("<html>log in")), Request: r}, nil
	})
	c := newClient(t, func(o *client.Options) { o.Timeout, o.Transport = 200*time.Millisecond, portal }, "127.0.0.1:1")
	_, listErr := c.Follow(t.Context(), orders)
	_, namesErr := c.ServiceNames(t.Context(), "")
	_, statusErr := c.ServerStatus(t.Context())
	for what, err := range map[string]error{"list": listErr, "names": namesErr, "status": statusErr} {
		if !errors.Is(err, client.ErrUnavailable) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := c.Register(t.Context(), quick("orders", "10.0.0.1", 80)); !errors.Is(err, client.ErrPending) {
		t.Errorf("registration: %v", err)
	}
}

// Calls used to work on after Close, and left a connection behind.
func TestClose_CallsAfterwardsAndUnderWayAreErrClosed(t *testing.T) {
	s := startFake(t)
	pool := &http.Transport{}
	hold, arrived := make(chan struct{}), &atomic.Int32{}
	slow := roundTripper(func(r *http.Request) (*http.Response, error) {
		if strings.HasSuffix(r.URL.Path, "/metrics") {
			arrived.Add(1)
			select {
			case <-hold:
			case <-r.Context().Done():
				return nil, r.Context().Err()
			}
		}
		return pool.RoundTrip(r)
	})
	t.Cleanup(pool.CloseIdleConnections)
	defer close(hold)
	c := newClient(t, func(o *client.Options) { o.Transport, o.Timeout, o.AttemptTimeout = slow, time.Minute, time.Minute }, s.URL())
	service := follow(t, c)
	underWay := make(chan error, 1)
	go func() { _, err := c.ServerStatus(context.Background()); underWay <- err }()
	until(t, "the call under way", func() bool { return arrived.Load() == 1 })
	must(t, c.Close(t.Context()))
	var underWayErr error
	within(t, 10*time.Second, "the end of the call under way", func() { underWayErr = <-underWay })
	_, namesErr := c.ServiceNames(t.Context(), "")
	_, followErr := c.Follow(t.Context(), orders)
	for what, err := range map[string]error{
		"under way": underWayErr, "names": namesErr, "follow": followErr, "refresh": service.Refresh(t.Context()),
		"register": c.Register(t.Context(), quick("orders", "10.0.0.1", 80)),
	} {
		if !errors.Is(err, client.ErrClosed) {
			t.Errorf("%s: %v", what, err)
		}
	}
	service.Subscribe(func(client.Event) { t.Error("told after Close") })
}

func TestOptions_NumbersThatAreNoDurationsAreRefused(t *testing.T) {
	for field, o := range map[string]client.Options{
		"Timeout": {Timeout: 10}, "AttemptTimeout": {AttemptTimeout: 4}, "PollInterval": {PollInterval: 30}, "FailoverInterval": {FailoverInterval: 5},
	} {
		o.Servers = []string{"127.0.0.1:1"}
		var bad *client.InvalidError
		if _, err := client.New(o); !errors.As(err, &bad) || bad.Field != field {
			t.Errorf("%s: %v", field, err)
		}
	}
}
