package client_test

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/rollcall-io/rollcall/client"
	"github.com/rollcall-io/rollcall/client/fake"
)

// up is a healthy instance of orders.
func up(port int, weight float64) fake.Instance {
	return fake.Instance{Service: "orders", IP: "10.0.0.1", Port: port, Weight: weight, Enabled: true, Healthy: true, Ephemeral: true}
}

const listRequest = "GET /nacos/v1/ns/instance/list"

var orders = client.ServiceName{Group: client.DefaultGroup, Name: "orders"}

func follow(t testing.TB, c *client.Client, clusters ...string) *client.Service {
	t.Helper()
	s, err := c.Follow(t.Context(), orders, clusters...)
	must(t, err)
	t.Cleanup(s.Close)
	return s
}

func ports(s *client.Snapshot) (ports []int) {
	for _, i := range s.All() {
		ports = append(ports, i.Port)
	}
	return ports
}

// channels are the ways in which a client hears of changes.
var channels = map[string]struct {
	plain bool
	tweak func(*client.Options)
}{
	"stream": {false, func(o *client.Options) { o.PollInterval = time.Hour }},
	"push":   {true, func(o *client.Options) { o.PollInterval = time.Hour }},
	"poll":   {true, func(o *client.Options) { o.PollInterval, o.NoPush = 20*time.Millisecond, true }},
}

// mirror builds a service up from events alone.
type mirror struct {
	t     testing.TB
	mu    sync.Mutex
	state map[string]float64
}

func (m *mirror) event(e client.Event) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, i := range e.Added {
		if _, known := m.state[i.Addr()]; known {
			m.t.Errorf("%s was added twice", i.Addr())
		}
		m.state[i.Addr()] = i.Weight
	}
	for _, i := range e.Modified {
		if w, known := m.state[i.Addr()]; !known || w == i.Weight && i.Healthy {
			m.t.Errorf("%s was modified from %v to %v", i.Addr(), w, i.Weight)
		}
		m.state[i.Addr()] = i.Weight
	}
	for _, i := range e.Removed {
		if _, known := m.state[i.Addr()]; !known {
			m.t.Errorf("%s was removed and not known", i.Addr())
		}
		delete(m.state, i.Addr())
	}
}

func (m *mirror) is(want map[string]float64) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Equal(m.state, want)
}

func TestFollow_EveryChannelTellsEveryChange(t *testing.T) {
	for name, way := range channels {
		t.Run(name, func(t *testing.T) {
			s := startFake(t)
			s.Plain(way.plain)
			c := newClient(t, way.tweak, s.URL())
			service := follow(t, c)
			m := &mirror{t: t, state: map[string]float64{}}
			service.Subscribe(m.event)
			if name == "push" { // subscribed once it is known that there is no watch
				until(t, "subscription", func() bool { return s.Requests(listRequest) > 1 })
			}
			want := map[string]float64{}
			for round := range 30 {
				port := 80 + round%7
				addr := fmt.Sprintf("10.0.0.1:%d", port)
				if round%3 == 2 {
					if s.Remove(up(port, 0)) {
						delete(want, addr)
					}
				} else {
					s.Put(up(port, float64(round+1)))
					want[addr] = float64(round + 1)
				}
				if round%5 == 0 {
					until(t, fmt.Sprintf("state after round %d", round), func() bool { return m.is(want) })
				}
			}
			until(t, "last state", func() bool { return m.is(want) })
		})
	}
}

func TestFollow_ComesBackAfterTheServer(t *testing.T) {
	for name, way := range channels {
		t.Run(name, func(t *testing.T) {
			s := startFake(t)
			s.Plain(way.plain)
			s.Put(up(80, 1))
			c := newClient(t, way.tweak, s.URL())
			service := follow(t, c)
			s.Pause()
			s.Put(up(81, 1))
			if got := ports(service.Snapshot()); !slices.Equal(got, []int{80}) {
				t.Fatalf("while the server is gone: %v", got)
			}
			must(t, s.Restart())
			until(t, "the newer list", func() bool { return slices.Equal(ports(service.Snapshot()), []int{80, 81}) })
		})
	}
}

func TestFollow_UnsubscribeAndCloseReallyStop(t *testing.T) {
	s := startFake(t)
	c := newClient(t, func(o *client.Options) { o.PollInterval = 10 * time.Millisecond }, s.URL())
	one, two := follow(t, c), follow(t, c)
	one.Close()
	one.Close()
	s.Put(up(80, 1))
	until(t, "the other handle to hear", func() bool { return len(two.Snapshot().All()) == 1 })
	two.Close()
	if n := c.Followed(); len(n) != 0 {
		t.Errorf("still followed: %v", n)
	}
	if _, known := c.Cached(orders); known {
		t.Error("still cached")
	}
	n := s.Requests(listRequest) + 1 // one may have been under way
	throughout(t, 200*time.Millisecond, "quiet", func() bool { return s.Requests(listRequest) <= n })
}

func TestFollow_ClustersAreFiltered(t *testing.T) {
	s := startFake(t)
	a, b := up(80, 1), up(81, 1)
	a.Cluster, b.Cluster = "A", "B"
	s.Put(a)
	s.Put(b)
	c := newClient(t, nil, s.URL())
	if got := ports(follow(t, c, "B").Snapshot()); !slices.Equal(got, []int{81}) {
		t.Errorf("cluster B: %v", got)
	}
	all := follow(t, c).Snapshot()
	for range 20 {
		if i := all.PickNear("A"); i.Cluster != "A" {
			t.Fatalf("near A: %v", i.Key())
		}
		if all.PickNear("C") == nil || all.NextNear("C") == nil || all.PickByKeyNear("B", "x").Cluster != "B" {
			t.Fatal("a cluster without instances must mean all of them")
		}
	}
}

func TestFollow_NobodyAnswers(t *testing.T) {
	s := startFake(t)
	s.Fail(http.StatusServiceUnavailable)
	c := newClient(t, nil, s.URL())
	if _, err := c.Follow(t.Context(), orders); !errors.Is(err, client.ErrUnavailable) {
		t.Fatal(err)
	}
	lazy, err := c.FollowLazy(orders)
	must(t, err)
	defer lazy.Close()
	if _, err := lazy.Pick(); !errors.Is(err, client.ErrNoInstance) || lazy.Snapshot().Source().String() != "nowhere" {
		t.Fatal(err)
	}
	s.Put(up(80, 1))
	s.Fail(0)
	until(t, "the list", func() bool { _, err := lazy.Pick(); return err == nil })
}

func TestFollow_EmptyProtection(t *testing.T) {
	for _, protect := range []bool{false, true} {
		s := startFake(t)
		s.Put(up(80, 1))
		c := newClient(t, func(o *client.Options) { o.ProtectEmpty, o.PollInterval = protect, 10*time.Millisecond }, s.URL())
		service := follow(t, c)
		s.Remove(up(80, 1))
		must(t, service.Refresh(t.Context()))
		if got := len(service.Snapshot().All()); (got == 1) != protect {
			t.Errorf("protect %v: %d instances", protect, got)
		}
		s.Put(up(81, 1))
		until(t, "the newer instance", func() bool { return slices.Equal(ports(service.Snapshot()), []int{81}) })
	}
}

func TestDisk_StartWithoutServers(t *testing.T) {
	dir, s := t.TempDir(), startFake(t)
	odd := up(80, 0.25)
	odd.Metadata = map[string]string{"zone": "ü"}
	s.Put(odd)
	c := newClient(t, func(o *client.Options) { o.CacheDir = dir }, s.URL())
	follow(t, c)
	must(t, c.Close(t.Context())) // flushes

	must(t, os.WriteFile(filepath.Join(dir, "public", "torn.json"), []byte(`{"name":"DEFAULT_GROUP@@torn","hosts":[{`), 0o600))
	s.Pause()
	again := newClient(t, func(o *client.Options) { o.CacheDir, o.Timeout = dir, time.Second }, s.URL())
	service := follow(t, again)
	i, err := service.Pick()
	if err != nil || i.Weight != 0.25 || i.Metadata["zone"] != "ü" || service.Snapshot().Source() != client.FromDisk {
		t.Fatalf("%v %+v from %v", err, i, service.Snapshot().Source())
	}
	must(t, s.Restart())
	s.Put(up(81, 1))
	until(t, "the server's list", func() bool {
		return service.Snapshot().Source() == client.FromServer && len(service.Snapshot().All()) == 2
	})
}

func TestFailover_SwitchPinsAnswers(t *testing.T) {
	cache, dir, s := t.TempDir(), t.TempDir(), startFake(t)
	s.Put(up(80, 1))
	c := newClient(t, func(o *client.Options) {
		o.CacheDir, o.FailoverDir, o.FailoverInterval, o.PollInterval = cache, dir, 10*time.Millisecond, 10*time.Millisecond
	}, s.URL())
	service := follow(t, c)
	m := &mirror{t: t, state: map[string]float64{}}
	service.Subscribe(m.event)
	until(t, "file", func() bool {
		return os.CopyFS(filepath.Join(t.TempDir(), "x"), os.DirFS(cache)) == nil && hasFile(cache)
	})
	must(t, os.CopyFS(filepath.Join(dir, "public"), os.DirFS(filepath.Join(cache, "public"))))
	s.Put(up(81, 1))
	until(t, "two", func() bool { return len(service.Snapshot().All()) == 2 })
	must(t, os.WriteFile(filepath.Join(dir, "switch"), []byte("1\n"), 0o600))
	until(t, "pinned list", func() bool { return service.Snapshot().Source() == client.FromFailover })
	s.Put(up(82, 1))
	must(t, service.Refresh(t.Context()))
	if got := ports(service.Snapshot()); !slices.Equal(got, []int{80}) {
		t.Errorf("while pinned: %v", got)
	}
	must(t, os.WriteFile(filepath.Join(dir, "switch"), []byte("0"), 0o600))
	until(t, "all three", func() bool {
		return m.is(map[string]float64{"10.0.0.1:80": 1, "10.0.0.1:81": 1, "10.0.0.1:82": 1})
	})
}

func hasFile(cache string) bool {
	files, _ := filepath.Glob(filepath.Join(cache, "public", "*.json")) // the pattern is good
	return len(files) == 1
}

func TestNames_PagesAndStatus(t *testing.T) {
	s := startFake(t)
	for i := range 1203 {
		s.Put(fake.Instance{Service: fmt.Sprintf("G@@s%d", i), IP: "10.0.0.1", Port: 1})
	}
	c := newClient(t, nil, s.URL())
	names, err := c.ServiceNames(t.Context(), "G")
	if err != nil || len(names) != 1203 {
		t.Fatalf("%d names, %v", len(names), err)
	}
	if status, err := c.ServerStatus(t.Context()); err != nil || status != "UP" {
		t.Fatal(status, err)
	}
}

func TestSubscribe_ASubscriberThatPanicsOrHangsHoldsUpNobody(t *testing.T) {
	s := startFake(t)
	c := newClient(t, nil, s.URL())
	service := follow(t, c)
	hang := make(chan struct{})
	defer close(hang)
	service.Subscribe(func(client.Event) { panic("a subscriber's own fault") })
	service.Subscribe(func(client.Event) { <-hang })
	m := &mirror{t: t, state: map[string]float64{}}
	service.Subscribe(m.event)
	for i := range 5 {
		s.Put(up(80+i, 1))
		until(t, "event", func() bool { m.mu.Lock(); defer m.mu.Unlock(); return len(m.state) == i+1 })
	}
}
