package client_test

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rollcall-io/rollcall/client"
	"github.com/rollcall-io/rollcall/internal/app"
	"github.com/rollcall-io/rollcall/internal/clustertest"
	"github.com/rollcall-io/rollcall/internal/loopback"
)

// cluster is three nodes whose HTTP addresses stay the same when they start again.
func cluster(t *testing.T, more func(*app.Options)) (c *clustertest.Cluster, servers []string) {
	t.Helper()
	at := map[string]string{}
	for n := range 3 {
		at[fmt.Sprint("n", n+1)] = loopback.FreeAddress(t)
	}
	c = clustertest.Start(t, 3, func(o *app.Options) {
		o.HTTPAddr = at[o.NodeID]
		if more != nil {
			more(o)
		}
	})
	for _, m := range c.Members() {
		servers = append(servers, m.HTTP)
	}
	return c, servers
}

// steady is a registration that turns unhealthy three seconds after its last beat, and is
// gone after six.
func steady(service string, port int) client.Registration {
	return client.Registration{Service: service, IP: "10.0.0.1", Port: port, Metadata: map[string]string{
		client.MetaBeatInterval: "300", client.MetaBeatTimeout: "3000", client.MetaDeleteTimeout: "6000",
	}}
}

// watcher notes every instance that was lost on the way.
type watcher struct {
	mu   sync.Mutex
	lost []string
}

func (w *watcher) event(e client.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, i := range e.Removed {
		w.lost = append(w.lost, i.Addr()+" removed")
	}
	for _, i := range e.Modified {
		if !i.Healthy {
			w.lost = append(w.lost, i.Addr()+" unhealthy")
		}
	}
}

func (w *watcher) check(t *testing.T, when string) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.lost) > 0 {
		t.Errorf("%s: %v", when, w.lost)
		w.lost = nil
	}
}

// forgive takes out what was to be lost; false when it is not noted yet.
func (w *watcher) forgive(what string) (noted bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	before := len(w.lost)
	w.lost = slices.DeleteFunc(w.lost, func(s string) bool { return s == what })
	return len(w.lost) < before
}

func healthy(s *client.Service) int { return len(s.Snapshot().Healthy()) }

func TestCluster_LeaderFollowerAndAllDie(t *testing.T) {
	c, servers := cluster(t, nil)
	provider, consumer := newClient(t, nil, servers...), newClient(t, nil, servers...)
	const n = 20
	var all []client.Registration
	for i := range n {
		all = append(all, steady("orders", 80+i))
	}
	must(t, provider.RegisterAll(t.Context(), all))
	service := follow(t, consumer)
	c.Until("all instances seen", func() bool { return healthy(service) == n })
	w := &watcher{}
	service.Subscribe(w.event)

	for _, victim := range []*clustertest.Member{c.Leader(), c.Followers()[0]} {
		victim.Stop()
		// What is registered meanwhile is seen too.
		extra := steady("orders", 1000+len(victim.ID))
		must(t, provider.Register(t.Context(), extra))
		c.Until("the newcomer", func() bool { return healthy(service) == n+1 })
		w.check(t, "after "+victim.ID+" stopped")
		must(t, provider.Deregister(t.Context(), extra.Key()))
		c.Until("the newcomer gone", func() bool { return w.forgive(fmt.Sprintf("10.0.0.1:%d removed", extra.Port)) })
		victim.Start()
		c.WaitReady()
	}
	w.check(t, "after two deaths")

	allDie(t, c, provider, service, n)
	w.check(t, "after all died and came back")
}

// allDie stops all nodes, registers one more instance meanwhile, and starts them again.
func allDie(t *testing.T, c *clustertest.Cluster, provider *client.Client, service *client.Service, n int) {
	t.Helper()
	for _, m := range c.Running() {
		m.Stop()
	}
	if err := provider.Register(shortly(t), steady("orders", 2000)); !errors.Is(err, client.ErrPending) {
		t.Fatalf("registered at nobody: %v", err)
	}
	if healthy(service) != n {
		t.Errorf("%d instances known while no server is there", healthy(service))
	}
	for _, m := range c.Members() {
		m.Start()
	}
	c.WaitReady()
	c.Until("everybody back", func() bool { return healthy(service) == n+1 })
}

// A node that is cut off goes on streaming nothing. The list shows it, and the stream moves.
func TestCluster_StreamAtANodeThatIsCutOff(t *testing.T) {
	c, servers := cluster(t, nil)
	provider := newClient(t, nil, servers...)
	// The stream goes to the follower, lists to all.
	cut := c.Followers()[0]
	pool := &http.Transport{}
	t.Cleanup(pool.CloseIdleConnections)
	first := &firstWatch{RoundTripper: pool, to: strings.TrimPrefix(cut.HTTP, "http://")}
	consumer := newClient(t, func(o *client.Options) { o.PollInterval, o.Transport = time.Second, first }, servers...)
	service := follow(t, consumer)
	until(t, "stream", func() bool { return first.streams.Load() == 1 })
	c.Isolate(cut, clustertest.Fault{Drop: true})
	must(t, provider.Register(t.Context(), steady("orders", 80)))
	until(t, "the instance", func() bool { return healthy(service) == 1 })
	until(t, "another stream", func() bool { return first.streams.Load() > 1 })
	c.Heal()
}

// A stream that tells of every change is kept, whatever lists show before it does.
func TestCluster_StreamThatTellsIsKept(t *testing.T) {
	c, servers := cluster(t, nil)
	provider := newClient(t, nil, servers...)
	pool := &http.Transport{}
	t.Cleanup(pool.CloseIdleConnections)
	first := &firstWatch{RoundTripper: pool, to: strings.TrimPrefix(c.Followers()[0].HTTP, "http://")}
	consumer := newClient(t, func(o *client.Options) { o.PollInterval, o.Transport = 10*time.Millisecond, first }, servers...)
	service := follow(t, consumer)
	until(t, "stream", func() bool { return first.streams.Load() == 1 })
	for i := range 40 {
		must(t, provider.Register(t.Context(), steady("orders", 80+i)))
		until(t, "the instance", func() bool { return healthy(service) == i+1 })
	}
	throughout(t, 1500*time.Millisecond, "only stream", func() bool { return first.streams.Load() == 1 })
}

// firstWatch sends the first stream to a node of the test's choice.
type firstWatch struct {
	http.RoundTripper
	to      string
	streams atomic.Int32
}

func (f *firstWatch) RoundTrip(r *http.Request) (*http.Response, error) {
	if strings.HasSuffix(r.URL.Path, "/watch") && f.streams.Add(1) == 1 {
		r = r.Clone(r.Context())
		r.URL.Host = f.to
	}
	return f.RoundTripper.RoundTrip(r)
}

func TestCluster_GoneAtOnceWhenClosed(t *testing.T) {
	c, servers := cluster(t, nil)
	provider, consumer := newClient(t, nil, servers...), newClient(t, nil, servers...)
	for i := range 5 {
		must(t, provider.Register(t.Context(), steady("orders", 80+i)))
	}
	service := follow(t, consumer)
	c.Until("all instances seen", func() bool { return healthy(service) == 5 })
	begin := time.Now()
	must(t, provider.Close(t.Context()))
	c.Until("all gone", func() bool { return len(service.Snapshot().All()) == 0 })
	if took := time.Since(begin); took > 5*time.Second { // by its timeouts none could be gone yet
		t.Errorf("it took %s", took)
	}
	// Longer than a beat's way: none may bring an instance back.
	throughout(t, time.Second, "gone for good", func() bool { return len(service.Snapshot().All()) == 0 })
}

func TestCluster_DeregisteredByAnotherRegistersAgain(t *testing.T) {
	c, servers := cluster(t, nil)
	provider := newClient(t, nil, servers...)
	r := steady("orders", 80)
	r.Weight = 7
	must(t, provider.Register(t.Context(), r))
	service := follow(t, provider)
	c.Until("instance seen", func() bool { return healthy(service) == 1 })
	w := &watcher{}
	service.Subscribe(w.event)
	if a, err := c.Leader().Deregister("orders", "10.0.0.1", 80); err != nil || a.Status != 200 {
		t.Fatal(err, a)
	}
	c.Until("instance removed", func() bool { w.mu.Lock(); defer w.mu.Unlock(); return len(w.lost) == 1 })
	c.Until("instance back", func() bool { return healthy(service) == 1 })
	if i, _ := service.Pick(); i.Weight != 7 {
		t.Errorf("it came back with weight %v", i.Weight)
	}
}

func TestCluster_EveryChannel(t *testing.T) {
	_, servers := cluster(t, nil)
	provider := newClient(t, nil, servers...)
	for name, tweak := range map[string]func(*client.Options){
		"stream": func(o *client.Options) { o.PollInterval, o.NoPush = time.Hour, true },
		"push":   func(o *client.Options) { o.PollInterval, o.MaxStreams = time.Hour, -1 },
		"poll":   func(o *client.Options) { o.PollInterval, o.MaxStreams, o.NoPush = 50*time.Millisecond, -1, true },
	} {
		t.Run(name, func(t *testing.T) {
			consumer := newClient(t, tweak, servers...)
			service, err := consumer.Follow(t.Context(), client.ServiceName{Name: "by-" + name})
			must(t, err)
			defer service.Close()
			for i := range 10 {
				must(t, provider.Register(t.Context(), steady("by-"+name, 80+i)))
				until(t, fmt.Sprintf("instance %d", i), func() bool { return healthy(service) == i+1 })
			}
		})
	}
}

func TestCluster_ValuesRoundTrip(t *testing.T) {
	_, servers := cluster(t, nil)
	c := newClient(t, func(o *client.Options) { o.Namespace = "team-1" }, servers...)
	r := client.Registration{Service: "G@@orders", Cluster: "C1", IP: "::1", Port: 443, Weight: 0.5, Metadata: map[string]string{"a;b%c+d": `{"ü":"&="}`, "e": ""}}
	must(t, c.Register(t.Context(), r))
	service, err := c.Follow(t.Context(), client.ServiceName{Group: "G", Name: "orders"}, "C1")
	must(t, err)
	defer service.Close()
	var i *client.Instance
	until(t, "instance", func() bool { i, err = service.Pick(); return err == nil })
	if i.Addr() != "[::1]:443" || i.Weight != 0.5 || i.Cluster != "C1" || fmt.Sprint(i.Metadata) != fmt.Sprint(r.Metadata) || !i.Ephemeral {
		t.Errorf("%+v", i)
	}
	until(t, "the name at the node that is asked", func() bool {
		names, err := c.ServiceNames(t.Context(), "G")
		return err == nil && slices.Equal(names, []string{"orders"})
	})
	if status, err := c.ServerStatus(t.Context()); err != nil || status != "UP" {
		t.Errorf("%q %v", status, err)
	}
}
