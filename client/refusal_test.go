package client_test

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rollcall-io/rollcall/client"
	"github.com/rollcall-io/rollcall/client/fake"
)

// A living instance used to stop beating, and expired, because of one bad update.
func TestUpdate_ARefusalKeepsTheOldValuesAlive(t *testing.T) {
	s := startFake(t)
	s.BeatInterval(30 * time.Millisecond)
	c := newClient(t, nil, s.URL())
	r := quick("orders", "10.0.0.1", 80)
	r.Weight = 7
	must(t, c.Register(t.Context(), r))
	s.Fail(http.StatusBadRequest)
	bad := r
	bad.Weight = 9
	var e *client.ServerError
	if err := c.Update(t.Context(), bad); !errors.As(err, &e) || !e.Refused() || errors.Is(err, client.ErrPending) {
		t.Fatal(err)
	}
	s.Fail(0)
	n := s.Beats()
	until(t, "beats go on", func() bool { return s.Beats() > n+3 })
	s.Forget()
	until(t, "the instance back", func() bool { return len(s.Instances("orders")) == 1 })
	if got := s.Instances("orders")[0].Weight; got != 7 {
		t.Errorf("it came back with weight %v", got)
	}
}

// A deregistration that goes on in the background used to be forgotten when the same key
// was registered again and refused.
func TestRegister_ARefusalDoesNotEndADeregistration(t *testing.T) {
	s := startFake(t)
	pool := &http.Transport{}
	t.Cleanup(pool.CloseIdleConnections)
	var bad atomic.Bool
	refusing := roundTripper(func(r *http.Request) (*http.Response, error) {
		if bad.Load() && r.Method == http.MethodPost {
			return &http.Response{StatusCode: http.StatusBadRequest, Body: http.NoBody, Request: r}, nil
		}
		return pool.RoundTrip(r)
	})
	c := newClient(t, func(o *client.Options) { o.Transport = refusing }, s.URL())
	r := client.Registration{Service: "db", IP: "10.0.0.1", Port: 80, Persistent: true}
	must(t, c.Register(t.Context(), r))
	s.Fail(http.StatusServiceUnavailable)
	if err := c.Deregister(shortly(t), r.Key()); !errors.Is(err, client.ErrPending) {
		t.Fatal(err)
	}
	bad.Store(true)
	if err := c.Register(t.Context(), r); err == nil || errors.Is(err, client.ErrPending) {
		t.Fatal(err)
	}
	s.Fail(0)
	until(t, "the instance gone", func() bool { return len(s.Instances("db")) == 0 && len(c.Registrations()) == 0 })
}

// The subscription of a closed handle used to live as long as any handle of the service.
func TestSubscribe_ClosingTheHandleEndsItWhileOthersFollow(t *testing.T) {
	s := startFake(t)
	c := newClient(t, nil, s.URL())
	one, two := follow(t, c), follow(t, c)
	var ones, twos atomic.Int32
	one.Subscribe(func(client.Event) { ones.Add(1) })
	two.Subscribe(func(client.Event) { twos.Add(1) })
	until(t, "both told what is there", func() bool { return ones.Load() == 1 && twos.Load() == 1 })
	one.Close()
	for i := range 5 {
		s.Put(up(80+i, 1))
		until(t, "the other told", func() bool { return twos.Load() == int32(i+2) })
	}
	if n := ones.Load(); n != 1 {
		t.Errorf("told %d times after its handle was closed", n-1)
	}
}

func TestCached_FindsANameWithoutItsGroup(t *testing.T) {
	s := startFake(t)
	s.Put(up(80, 1))
	c := newClient(t, nil, s.URL())
	follow(t, c)
	follow(t, c, "DEFAULT")
	for _, name := range []client.ServiceName{{Name: "orders"}, {Name: "DEFAULT_GROUP@@orders"}, orders} {
		if snapshot, known := c.Cached(name); !known || len(snapshot.All()) != 1 || name.String() != "DEFAULT_GROUP@@orders" {
			t.Errorf("%q: %v", name, known)
		}
	}
	if all := c.Followed(); len(all) != 1 || all[0] != orders {
		t.Errorf("followed: %v", all)
	}
}

func TestSnapshot_WithoutThoseThatFailed(t *testing.T) {
	s := startFake(t)
	for port := 80; port < 84; port++ {
		s.Put(up(port, 1))
	}
	c := newClient(t, nil, s.URL())
	snapshot := follow(t, c).Snapshot()
	key := snapshot.PickByKey("user")
	rest := snapshot.Without(key)
	for range 50 {
		if rest.Pick() == key || rest.Next() == key || rest.PickByKey("user") == key {
			t.Fatal("the instance that was left out is chosen")
		}
	}
	if len(rest.All()) != 3 || len(snapshot.All()) != 4 || rest.Source() != client.FromServer {
		t.Errorf("%d left of %d", len(rest.All()), len(snapshot.All()))
	}
	if none := snapshot.Without(snapshot.All()...); none.Pick() != nil || len(none.All()) != 0 {
		t.Error("something is left")
	}
}

func TestInstance_MadeByHandHasAnAddress(t *testing.T) {
	if got := (&client.Instance{IP: "::1", Port: 80}).Addr(); got != "[::1]:80" {
		t.Error(got)
	}
}

// A health check that never answered used to leave the process in traffic, and Stop
// waiting for it.
func TestRegistrar_AHealthCheckThatHangsIsSickAndHoldsUpNobody(t *testing.T) {
	s := startFake(t)
	c := newClient(t, nil, s.URL())
	hang, hung, wedged := make(chan struct{}), &atomic.Int32{}, &atomic.Bool{}
	r := registrar(t, c, func(o *client.RegistrarOptions) {
		o.HealthInterval = 20 * time.Millisecond
		o.Health = func(context.Context) error {
			if wedged.Load() {
				hung.Add(1)
				<-hang
			}
			return nil
		}
	})
	must(t, r.Start(t.Context()))
	traffic := func(want bool) func() bool {
		return func() bool {
			all := s.Instances("orders")
			return len(all) == 2 && all[0].Enabled == want && all[1].Enabled == want
		}
	}
	until(t, "traffic", traffic(true))
	wedged.Store(true)
	until(t, "a check that hangs", func() bool { return hung.Load() == 1 }) // on a busy machine one is late before that
	until(t, "no traffic", traffic(false))
	throughout(t, 200*time.Millisecond, "asked once only", func() bool { return hung.Load() == 1 })
	within(t, 5*time.Second, "Stop", func() { must(t, r.Stop(t.Context())) })
	if left := s.Instances("orders"); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
	close(hang)
}

// Requests under way used to lose their ten seconds to a registry that does not answer.
func TestListenAndServe_RequestsEndInPeaceThoughTheRegistryIsGone(t *testing.T) {
	t.Parallel()
	s, err := fake.Start()
	must(t, err)
	defer s.Stop()
	c := newClient(t, func(o *client.Options) { o.Timeout = 11 * time.Second }, s.URL())
	asked, answer := make(chan struct{}), make(chan struct{})
	server := &http.Server{Addr: "127.0.0.1:0", Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		close(asked)
		<-answer
	})}
	ctx, stop := context.WithCancel(context.Background())
	left, done := make(chan struct{}), make(chan error, 1)
	go func() {
		done <- c.ListenAndServe(ctx, server, client.RegistrarOptions{
			Registrations: []client.Registration{quick("orders", "", 0)}, Drain: 100 * time.Millisecond, Deregistered: func(error) { close(left) },
		})
	}()
	until(t, "registration", func() bool { return len(s.Instances("orders")) == 1 })
	url := "http://" + addr(s.Instances("orders")[0])
	got := make(chan error, 1)
	go func() {
		resp, err := http.Get(url)
		if err == nil {
			err = resp.Body.Close()
		}
		got <- err
	}()
	<-asked
	s.Pause()
	stop()
	<-left
	time.AfterFunc(2500*time.Millisecond, func() { close(answer) }) // more than any slack
	if err := <-got; err != nil {
		t.Error(err)
	}
	if err := <-done; !errors.Is(err, client.ErrPending) || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the drain time was cut short, or worse: %v", err)
	}
	http.DefaultClient.CloseIdleConnections()
}
