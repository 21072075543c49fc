package client_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rollcall-io/rollcall/client"
	"github.com/rollcall-io/rollcall/internal/clustertest"
)

// Full beats carry the metadata once more; none of it may be lost or make a second
// instance.
func TestCluster_BeatsLeaveOddMetadataAlone(t *testing.T) {
	c, servers := cluster(t, nil)
	provider := newClient(t, nil, servers...)
	r := steady("orders", 80)
	maps.Copy(r.Metadata, map[string]string{
		"mixed": "a;b%c+d", "amp": "x&y=z", "quote": `he said "no"`, "zone": "Köln/北京", "percent": "50%", "hex": "%41", "empty": "",
	})
	must(t, provider.Register(t.Context(), r))
	consumer := newClient(t, nil, servers...)
	service := follow(t, consumer)
	until(t, "the instance", func() bool { return healthy(service) == 1 })
	throughout(t, 2*time.Second, "one with the metadata sent", func() bool {
		must(t, service.Refresh(t.Context())) // at one node after the other
		all := service.Snapshot().All()
		return len(all) == 1 && all[0].Healthy && maps.Equal(all[0].Metadata, r.Metadata)
	})
	for _, m := range c.Members() {
		if hosts, err := m.List("orders"); err != nil || len(hosts) != 1 {
			t.Errorf("%s lists %v, %v", m.ID, hosts, err)
		}
	}
}

// One name in two groups and three namespaces, one of them called default.
func TestCluster_GroupsAndNamespacesAreApart(t *testing.T) {
	_, servers := cluster(t, nil)
	type place struct{ namespace, group string }
	services := map[place]*client.Service{}
	providers := map[place]*client.Client{}
	port := func(p place) int { return 1000 + 10*len(p.namespace) + len(p.group) }
	for _, namespace := range []string{"", "default", "dev"} {
		c := newClient(t, func(o *client.Options) { o.Namespace = namespace }, servers...)
		for _, group := range []string{"", "G2"} {
			p := place{namespace, group}
			r := steady("apart", port(p))
			r.Group = group
			must(t, c.Register(t.Context(), r))
			s, err := c.Follow(t.Context(), client.ServiceName{Group: group, Name: "apart"})
			must(t, err)
			services[p], providers[p] = s, c
		}
	}
	only := func(p place) func() bool {
		return func() bool { return slices.Equal(ports(services[p].Snapshot()), []int{port(p)}) }
	}
	for p := range services {
		until(t, fmt.Sprintf("%+v its own instance alone", p), only(p))
	}
	gone := place{"", "G2"}
	must(t, providers[gone].Deregister(t.Context(), client.Key{Group: "G2", Service: "apart", IP: "10.0.0.1", Port: port(gone)}))
	until(t, "the one deregistered gone", func() bool { return len(services[gone].Snapshot().All()) == 0 })
	throughout(t, time.Second, "apart", func() bool {
		for p := range services {
			if p != gone && !only(p)() {
				return false
			}
		}
		return len(services[gone].Snapshot().All()) == 0
	})
}

// counter is a metric of all nodes together.
func counter(t *testing.T, c *clustertest.Cluster, series string) (sum int) {
	t.Helper()
	line := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(series) + ` (\S+)$`)
	for _, m := range c.Running() {
		resp, err := http.Get(m.HTTP + "/metrics")
		must(t, err)
		body, err := io.ReadAll(resp.Body)
		must(t, errors.Join(err, resp.Body.Close()))
		if found := line.FindSubmatch(body); found != nil {
			n, err := strconv.ParseFloat(string(found[1]), 64)
			must(t, err)
			sum += int(n)
		}
	}
	return sum
}

// byPush has changes told by pushes alone.
func byPush(o *client.Options) { o.MaxStreams, o.PollInterval = -1, time.Hour }

// Each push is acknowledged with the number that it carries, so that none is sent twice.
func TestCluster_PushesAreAcknowledged(t *testing.T) {
	c, servers := cluster(t, nil)
	provider, consumer := newClient(t, nil, servers...), newClient(t, byPush, servers...)
	service := follow(t, consumer)
	for i := range 20 {
		must(t, provider.Register(t.Context(), client.Registration{Service: "orders", IP: "10.0.0.1", Port: 80 + i}))
		until(t, "one more by a push", func() bool { return healthy(service) == i+1 })
	}
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	packets := func(outcome string) int {
		return counter(t, c, fmt.Sprintf(`rollcall_push_packets_total{outcome=%q}`, outcome))
	}
	until(t, "an acknowledgement of each push but those overtaken", func() bool {
		n := packets("sent")
		return n > 0 && n == packets("acked")+packets("superseded")
	})
	if retries, lost := counter(t, c, "rollcall_push_retries_total"), packets("unacked"); lost > 0 || retries > 5 {
		t.Errorf("%d pushes without an acknowledgement, %d sent again", lost, retries)
	}
}

// A list far larger than a packet of the network is pushed all the same.
func TestCluster_FourHundredInstancesByPush(t *testing.T) {
	_, servers := cluster(t, nil)
	provider, consumer := newClient(t, nil, servers...), newClient(t, byPush, servers...)
	var all []client.Registration
	for i := range 400 {
		all = append(all, client.Registration{Service: "orders", IP: "10.0.0.1", Port: 1000 + i, Metadata: map[string]string{"rack": fmt.Sprint(i)}})
	}
	must(t, provider.RegisterAll(t.Context(), all))
	service := follow(t, consumer)
	until(t, "all", func() bool { must(t, service.Refresh(t.Context())); return healthy(service) == 400 })
	for i := range 10 {
		begin := time.Now()
		must(t, provider.Register(t.Context(), client.Registration{Service: "orders", IP: "10.0.0.2", Port: 1 + i}))
		until(t, "one more by a push", func() bool { return healthy(service) == 401+i })
		if took := time.Since(begin); took > 5*time.Second {
			t.Errorf("it took %s", took)
		}
	}
}

// What the three nodes list is one thing to a client that asks each in turn: while nothing
// changes, nothing is told, and instances stay the same in memory.
func TestCluster_ListsOfAllNodesAreTheSame(t *testing.T) {
	_, servers := cluster(t, nil)
	provider := newClient(t, nil, servers...)
	var all []client.Registration
	for i := range 10 {
		all = append(all, client.Registration{Service: "orders", IP: "10.0.0.1", Port: 80 + i, Weight: float64(i + 1)})
	}
	must(t, provider.RegisterAll(t.Context(), all))
	pool := &http.Transport{}
	t.Cleanup(pool.CloseIdleConnections)
	var lists atomic.Int32
	counting := roundTripper(func(r *http.Request) (*http.Response, error) {
		if strings.HasSuffix(r.URL.Path, "/instance/list") {
			lists.Add(1)
		}
		return pool.RoundTrip(r)
	})
	consumer := newClient(t, func(o *client.Options) {
		o.MaxStreams, o.NoPush, o.PollInterval, o.Transport = -1, true, 20*time.Millisecond, counting
	}, servers...)
	service := follow(t, consumer)
	until(t, "all", func() bool { return healthy(service) == 10 })
	var told atomic.Int32
	service.Subscribe(func(client.Event) { told.Add(1) })
	until(t, "the first event", func() bool { return told.Load() == 1 })
	before := service.Snapshot().All()
	n := lists.Load()
	until(t, "thirty lists", func() bool { return lists.Load() > n+30 })
	if now := service.Snapshot().All(); told.Load() != 1 || !slices.Equal(now, before) {
		t.Errorf("told %d times, the same instances: %v", told.Load(), slices.Equal(now, before))
	}
}

// A process that dies says nothing: it is called unhealthy, then it is gone.
func TestCluster_AProviderThatDiesLeavesByItsTimeouts(t *testing.T) {
	_, servers := cluster(t, nil)
	pool := &http.Transport{}
	t.Cleanup(pool.CloseIdleConnections)
	var dead atomic.Bool
	var last atomic.Pointer[time.Time] // when it last sent anything
	mortal := roundTripper(func(r *http.Request) (*http.Response, error) {
		now := time.Now()
		if dead.Load() {
			return nil, errors.New("dead")
		}
		last.Store(&now)
		return pool.RoundTrip(r)
	})
	provider := newClient(t, func(o *client.Options) { o.Transport = mortal }, servers...)
	consumer := newClient(t, nil, servers...)
	r := quick("orders", "10.0.0.1", 80)
	r.Metadata[client.MetaDeleteTimeout] = "4000" // far enough from unhealthy that both are told apart
	must(t, provider.Register(t.Context(), r))
	must(t, consumer.Register(t.Context(), client.Registration{Service: "orders", IP: "10.0.0.2", Port: 80}))
	service := follow(t, consumer)
	until(t, "both", func() bool { return healthy(service) == 2 })
	w := &watcher{}
	service.Subscribe(w.event)
	dead.Store(true)
	until(t, "the dead one gone", func() bool { return slices.Equal(ips(service), []string{"10.0.0.2"}) })
	if took := time.Since(*last.Load()); took <= 4*time.Second || took > 12*time.Second {
		t.Errorf("gone %s after its last word, want a little over 4 s", took)
	}
	until(t, "both steps told", func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return slices.Equal(w.lost, []string{"10.0.0.1:80 unhealthy", "10.0.0.1:80 removed"})
	})
}

func ips(s *client.Service) (ips []string) {
	for _, i := range s.Snapshot().All() {
		ips = append(ips, i.IP)
	}
	return ips
}

// One node is down for good: every call succeeds, and soon.
func TestCluster_OneNodeDownEveryCallSucceeds(t *testing.T) {
	c, servers := cluster(t, nil)
	cl := newClient(t, nil, servers...)
	service := follow(t, cl)
	c.Followers()[0].Stop()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for i := range 30 {
		r := steady("orders", 80+i)
		must(t, cl.Register(ctx, r))
		must(t, service.Refresh(ctx))
		_, err := cl.ServiceNames(ctx, "")
		must(t, err)
		if status, err := cl.ServerStatus(ctx); err != nil || status != "UP" {
			t.Errorf("%q, %v", status, err)
		}
		must(t, cl.Deregister(ctx, r.Key()))
	}
}
