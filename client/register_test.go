package client_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rollcall-io/rollcall/client"
)

func TestRegister_ValuesArriveAsTheyAre(t *testing.T) {
	s := startFake(t)
	c := newClient(t, nil, s.URL())
	meta := map[string]string{"a;b%c+d": `{"x":"ü & = ?"}`, "version": "1"}
	must(t, c.Register(t.Context(), client.Registration{Service: "orders", Group: "G", IP: "10.0.0.1", Port: 80, Weight: 0.5, Metadata: meta}))
	got := s.Instances("G@@orders")
	if len(got) != 1 || got[0].Weight != 0.5 || got[0].Cluster != "DEFAULT" || !got[0].Enabled || !got[0].Ephemeral ||
		fmt.Sprint(got[0].Metadata) != fmt.Sprint(meta) {
		t.Fatalf("registered as %+v", got)
	}
	must(t, c.Update(t.Context(), client.Registration{Service: "G@@orders", IP: "10.0.0.1", Port: 80, Weight: 3, Disabled: true}))
	if got := s.Instances("G@@orders"); got[0].Weight != 3 || got[0].Enabled || len(got[0].Metadata) != 0 {
		t.Fatalf("updated to %+v", got)
	}
	must(t, c.Deregister(t.Context(), client.Key{Group: "G", Service: "orders", IP: "10.0.0.1", Port: 80}))
	if got := s.Instances("G@@orders"); len(got) != 0 {
		t.Fatalf("deregistered and there: %+v", got)
	}
}

func TestRegister_BigMetadataGoesInTheBody(t *testing.T) {
	s := startFake(t)
	c := newClient(t, nil, s.URL())
	big := make([]byte, 12<<10)
	for i := range big {
		big[i] = "abc%"[i%4]
	}
	must(t, c.Register(t.Context(), client.Registration{Service: "orders", IP: "10.0.0.1", Port: 80, Metadata: map[string]string{"big": string(big)}}))
	if got := s.Instances("orders"); got[0].Metadata["big"] != string(big) {
		t.Fatal("the metadata came out different")
	}
}

func TestRegister_BadValuesAreRefusedBeforeSending(t *testing.T) {
	s := startFake(t)
	c := newClient(t, nil, s.URL())
	good := client.Registration{Service: "orders", IP: "10.0.0.1", Port: 80}
	for field, spoil := range map[string]func(*client.Registration){
		"service":                func(r *client.Registration) { r.Service = "" },
		"ip":                     func(r *client.Registration) { r.IP = "" },
		"port":                   func(r *client.Registration) { r.Port = 65536 },
		"weight":                 func(r *client.Registration) { r.Weight = -1 },
		client.MetaBeatInterval:  func(r *client.Registration) { r.Metadata = map[string]string{client.MetaBeatInterval: "20000"} },
		client.MetaBeatTimeout:   func(r *client.Registration) { r.Metadata = map[string]string{client.MetaBeatTimeout: "x"} },
		client.MetaDeleteTimeout: func(r *client.Registration) { r.Metadata = map[string]string{client.MetaDeleteTimeout: "-5"} },
	} {
		r := good
		spoil(&r)
		var bad *client.InvalidError
		if err := c.Register(t.Context(), r); !errors.As(err, &bad) || bad.Field != field {
			t.Errorf("%s: %v", field, err)
		}
	}
	if n := len(c.Registrations()); n != 0 {
		t.Errorf("%d refused registrations are wanted", n)
	}
}

func TestRegister_ARefusalLeavesNothingAFailureIsHealed(t *testing.T) {
	s := startFake(t)
	c := newClient(t, nil, s.URL())
	s.Fail(http.StatusBadRequest)
	err := c.Register(t.Context(), quick("orders", "10.0.0.1", 80))
	var e *client.ServerError
	if !errors.As(err, &e) || e.Status != 400 || errors.Is(err, client.ErrPending) || len(c.Registrations()) != 0 {
		t.Fatalf("refused: %v, %v", err, c.Registrations())
	}
	s.Fail(http.StatusServiceUnavailable)
	err = c.Register(shortly(t), quick("orders", "10.0.0.1", 80))
	if !errors.Is(err, client.ErrPending) || !errors.Is(err, client.ErrUnavailable) {
		t.Fatalf("failed: %v", err)
	}
	s.Fail(0)
	until(t, "registration in the background", func() bool { return len(s.Instances("orders")) == 1 })
}

func TestRegister_AServerThatIsDownAtTheStartHealsLater(t *testing.T) {
	s := startFake(t)
	s.Pause()
	c := newClient(t, func(o *client.Options) { o.Timeout = 300 * time.Millisecond }, s.URL())
	if err := c.Register(t.Context(), quick("orders", "10.0.0.1", 80)); !errors.Is(err, client.ErrPending) {
		t.Fatal(err)
	}
	must(t, s.Restart())
	until(t, "registration in the background", func() bool { return len(s.Instances("orders")) == 1 })
	until(t, "beat", func() bool { return s.Beats() > 0 })
}

func TestRegister_MoreThanAllowed(t *testing.T) {
	s := startFake(t)
	c := newClient(t, func(o *client.Options) { o.MaxInstances = 2 }, s.URL())
	err := c.RegisterAll(t.Context(), []client.Registration{quick("a", "10.0.0.1", 1), quick("a", "10.0.0.1", 2), quick("a", "10.0.0.1", 3)})
	var bad *client.InvalidError
	if !errors.As(err, &bad) || len(s.Instances("a")) != 2 {
		t.Fatalf("%v, %d registered", err, len(s.Instances("a")))
	}
}

func TestBeat_ForgottenInstancesRegisterAgain(t *testing.T) {
	for _, light := range []bool{true, false} {
		s := startFake(t)
		s.LightBeats(light)
		s.BeatInterval(50 * time.Millisecond)
		c := newClient(t, nil, s.URL())
		r := quick("orders", "10.0.0.1", 80)
		r.Weight = 7
		must(t, c.Register(t.Context(), r))
		until(t, "some beats", func() bool { return s.Beats() > 3 })
		s.Forget()
		until(t, "the instance back", func() bool { return len(s.Instances("orders")) == 1 })
		if got := s.Instances("orders")[0]; got.Weight != 7 || got.Metadata[client.MetaBeatInterval] != "100" {
			t.Errorf("light %v: came back as %+v", light, got)
		}
	}
}

func TestBeat_ADisabledInstanceComesBackDisabled(t *testing.T) {
	s := startFake(t)
	s.BeatInterval(30 * time.Millisecond)
	c := newClient(t, nil, s.URL())
	r := quick("orders", "10.0.0.1", 80)
	r.Disabled = true
	must(t, c.Register(t.Context(), r))
	s.Forget()
	until(t, "the instance back", func() bool { return len(s.Instances("orders")) == 1 })
	if s.Instances("orders")[0].Enabled {
		t.Error("it gets traffic")
	}
}

func TestBeat_IntervalFromTheReply(t *testing.T) {
	s := startFake(t)
	s.BeatInterval(time.Hour)
	c := newClient(t, nil, s.URL())
	must(t, c.Register(t.Context(), quick("orders", "10.0.0.1", 80)))
	until(t, "first beat", func() bool { return s.Beats() == 1 })
	s.BeatInterval(10 * time.Millisecond)
	must(t, c.Register(t.Context(), quick("orders", "10.0.0.1", 81))) // starts with its own interval again
	until(t, "a fast row of beats", func() bool { return s.Beats() > 10 })
}

// A server that only fails is not hammered, however short the interval.
func TestBeat_AFailingServerIsSpared(t *testing.T) {
	s := startFake(t)
	c := newClient(t, nil, s.URL())
	r := quick("orders", "10.0.0.1", 80)
	r.Metadata[client.MetaBeatInterval] = "1"
	must(t, c.Register(t.Context(), r))
	s.Fail(http.StatusServiceUnavailable)
	n := s.Requests(beatRequest)
	throughout(t, time.Second, "patient", func() bool { return s.Requests(beatRequest) < n+50 })
	s.Fail(0)
	s.BeatInterval(50 * time.Millisecond)
	n = s.Beats()
	until(t, "beats again", func() bool { return s.Beats() > n+3 })
}

const beatRequest = "PUT /nacos/v1/ns/instance/beat"

// slowBeats holds beats back and lets a test see what is on its way.
type slowBeats struct {
	http.RoundTripper
	hold      chan struct{}
	inFlight  atomic.Int32
	deletedAt atomic.Int32 // beats in flight when the DELETE went out, +1
}

func (s *slowBeats) RoundTrip(r *http.Request) (*http.Response, error) {
	switch {
	case r.Method == http.MethodPut:
		s.inFlight.Add(1)
		defer s.inFlight.Add(-1)
		<-s.hold
	case r.Method == http.MethodDelete:
		s.deletedAt.Store(s.inFlight.Load() + 1)
	}
	return s.RoundTripper.RoundTrip(r)
}

func TestDeregister_AwaitsTheBeatInFlight(t *testing.T) {
	s := startFake(t)
	s.LightBeats(false)
	pool := &http.Transport{}
	t.Cleanup(pool.CloseIdleConnections)
	slow := &slowBeats{RoundTripper: pool, hold: make(chan struct{})}
	c := newClient(t, func(o *client.Options) { o.Transport = slow }, s.URL())
	r := quick("orders", "10.0.0.1", 80)
	must(t, c.Register(t.Context(), r))
	until(t, "a beat in flight", func() bool { return slow.inFlight.Load() == 1 })
	done := make(chan error, 1)
	go func() { done <- c.Deregister(context.WithoutCancel(t.Context()), r.Key()) }()
	until(t, "the deregistration to wait", func() bool { st := c.Registrations(); return len(st) == 1 && st[0].Leaving })
	close(slow.hold)
	must(t, <-done)
	if n := slow.deletedAt.Load(); n != 1 {
		t.Errorf("%d beats were on their way when the instance was deregistered", n-1)
	}
	if left := s.Instances("orders"); len(left) != 0 {
		t.Errorf("a beat brought back %+v", left)
	}
}

func TestDeregister_IsRepeatedUntilItGetsThrough(t *testing.T) {
	s := startFake(t)
	c := newClient(t, nil, s.URL())
	r := client.Registration{Service: "db", IP: "10.0.0.1", Port: 80, Persistent: true}
	must(t, c.Register(t.Context(), r))
	s.Fail(http.StatusServiceUnavailable)
	if err := c.Deregister(shortly(t), r.Key()); !errors.Is(err, client.ErrPending) {
		t.Fatal(err)
	}
	s.Fail(0)
	until(t, "the instance gone", func() bool { return len(s.Instances("db")) == 0 && len(c.Registrations()) == 0 })
	if err := c.Deregister(t.Context(), r.Key()); !errors.Is(err, client.ErrUnknown) {
		t.Errorf("once more: %v", err)
	}
}

func TestServers_AllAreUsedAndOneThatIsDownCostsNothing(t *testing.T) {
	a, b, d := startFake(t), startFake(t), startFake(t)
	c := newClient(t, nil, a.URL(), b.URL(), d.URL())
	register := func(service string) { // without beats, which would take turns too
		t.Helper()
		for i := range 9 {
			must(t, c.Register(t.Context(), client.Registration{Service: service, IP: "10.0.0.1", Port: 80 + i, Persistent: true}))
		}
	}
	register("orders")
	for _, s := range []interface{ Requests(string) int }{a, b, d} {
		if n := s.Requests("POST /nacos/v1/ns/instance"); n != 3 {
			t.Errorf("%d of 9 registrations came here, want 3", n)
		}
	}
	b.Pause()
	start := time.Now()
	register("payments")
	if took := time.Since(start); took > 2*time.Second {
		t.Errorf("nine registrations took %s", took)
	}
}

func TestLogin_TokenIsRenewedAndAWrongPasswordSaysSo(t *testing.T) {
	s := startFake(t)
	s.Login("fleet", "one")
	c := newClient(t, func(o *client.Options) { o.Username, o.Password = "fleet", "one" }, s.URL())
	for i := range 5 {
		must(t, c.Register(t.Context(), quick("orders", "10.0.0.1", 80+i)))
	}
	if n := s.Requests("POST /nacos/v1/auth/users/login"); n != 1 {
		t.Errorf("%d logins", n)
	}
	s.Login("fleet", "two") // the old token is good no more
	err := c.Register(t.Context(), quick("orders", "10.0.0.1", 90))
	var e *client.ServerError
	if !errors.As(err, &e) || e.Status != http.StatusForbidden || e.Op != "login" {
		t.Fatal(err)
	}
	if n := s.Requests("POST /nacos/v1/auth/users/login"); n > 3 {
		t.Errorf("%d logins with a wrong password", n)
	}
}

func TestMetrics_TwoClientsAndAfterClose(t *testing.T) {
	s := startFake(t)
	r := prometheus.NewRegistry()
	c := newClient(t, func(o *client.Options) { o.Registerer = r }, s.URL())
	must(t, c.Register(t.Context(), quick("orders", "10.0.0.1", 80)))
	if families, err := r.Gather(); err != nil || len(families) == 0 {
		t.Fatalf("%d families, %v", len(families), err)
	}
	if _, err := client.New(client.Options{Servers: []string{s.URL()}, Registerer: r}); err == nil {
		t.Error("a second client with the same registerer was not refused")
	}
	must(t, c.Close(t.Context()))
	again := newClient(t, func(o *client.Options) { o.Registerer = r }, s.URL())
	if err := c.Register(t.Context(), quick("orders", "10.0.0.1", 80)); !errors.Is(err, client.ErrClosed) {
		t.Errorf("registered after Close: %v", err)
	}
	must(t, again.Close(t.Context()))
}

func TestClose_DeregistersTheEphemeralOnes(t *testing.T) {
	s := startFake(t)
	c := newClient(t, nil, s.URL())
	var all []client.Registration
	for i := range 50 {
		all = append(all, quick("orders", "10.0.0.1", 80+i))
	}
	must(t, c.RegisterAll(t.Context(), all))
	must(t, c.Register(t.Context(), client.Registration{Service: "orders", IP: "10.0.0.2", Port: 80, Persistent: true}))
	must(t, c.Close(t.Context()))
	if left := s.Instances("orders"); len(left) != 1 || left[0].Ephemeral {
		t.Errorf("left: %+v", left)
	}
}

func TestOptions_BadOnes(t *testing.T) {
	for _, o := range []client.Options{
		{}, {Servers: []string{""}}, {Servers: []string{"ftp://x"}}, {Servers: []string{"http://u:p@x"}}, {Servers: []string{"x/path"}},
		{Servers: []string{"x"}, Password: "p"}, {Servers: []string{"x"}, BeatWorkers: 65}, {Servers: []string{"x"}, Timeout: -1},
	} {
		var bad *client.InvalidError
		if _, err := client.New(o); !errors.As(err, &bad) {
			t.Errorf("%+v: %v", o, err)
		}
	}
}
