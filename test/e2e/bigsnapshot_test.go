package e2e

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rollcall-io/rollcall/test/e2e/nodes"
	"github.com/rollcall-io/rollcall/test/faults/figures"
)

// times collects how long requests took.
type times struct {
	mu  sync.Mutex
	all []time.Duration
}

func (s *times) add(d time.Duration) {
	s.mu.Lock()
	s.all = append(s.all, d)
	s.mu.Unlock()
}

// p99 is the 99th of 100, and the longest.
func (s *times) p99() (p99, longest time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.all) == 0 {
		return 0, 0
	}
	slices.Sort(s.all)
	return s.all[len(s.all)*99/100], s.all[len(s.all)-1]
}

// crowdOf makes n instances in services of 500.
func crowdOf(n int, like nodes.Instance) []nodes.Instance {
	all := make([]nodes.Instance, n)
	for i := range all {
		all[i] = like
		all[i].Service, all[i].IP, all[i].Port = fmt.Sprintf("bulk-%d", i/500), fmt.Sprintf("10.7.%d.1", i/50_000), 1+i%50_000
	}
	return all
}

// padded is a registration with metadata of a kilobyte.
func padded(in nodes.Instance) (form map[string][]string) {
	values := in.Registration()
	values.Set("metadata", `{"k":"`+strings.Repeat("v", 1000)+`",`+values.Get("metadata")[1:])
	return values
}

// registerAll registers through all nodes.
func registerAll(t *testing.T, c *nodes.Cluster, all []nodes.Instance) {
	t.Helper()
	const clients = 32
	var wg sync.WaitGroup
	for k := range clients {
		wg.Go(func() {
			for i := k; i < len(all); i += clients {
				if !insist(c, i, func(n *nodes.Node) bool {
					a, err := n.Do(http.MethodPost, "/instance", padded(all[i]))
					return err == nil && a.OK()
				}) {
					t.Errorf("%s cannot be registered", all[i].Key())
					return
				}
			}
		})
	}
	wg.Wait()
}

// insist asks one node after the other, as clients do, until one takes what is sent. How
// long that takes in all is what is judged.
func insist(c *nodes.Cluster, first int, taken func(n *nodes.Node) bool) bool {
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); first++ {
		if taken(c.Nodes()[first%3]) {
			return true
		}
	}
	return false
}

// beatRound beats all instances once, spread over a time, and tells which failed.
func beatRound(t *testing.T, c *nodes.Cluster, all []nodes.Instance, over time.Duration, took *times) {
	const clients = 16
	begin := time.Now()
	var wg sync.WaitGroup
	for k := range clients {
		wg.Go(func() {
			for i := k; i < len(all); i += clients {
				pass(time.Until(begin.Add(over * time.Duration(i) / time.Duration(len(all)))))
				start := time.Now()
				if !insist(c, i, func(n *nodes.Node) bool { return n.Beat(context.Background(), all[i]) }) {
					t.Errorf("beat of %s is not taken", all[i].Key())
					return
				}
				took.add(time.Since(start))
			}
		})
	}
	wg.Wait()
}

// writeOn registers instances through all nodes in turn until what it returns is called,
// which gives those that were acknowledged, by service.
func writeOn(t *testing.T, c *nodes.Cluster, took *times) (stop func() map[string][]string) {
	var mu sync.Mutex
	acked := map[string][]string{}
	end := background(t, 4, func(k, i int) {
		in := nodes.Instance{Service: fmt.Sprintf("writer-%d", k), IP: "10.8.0.1", Port: 1 + i}.Lasting()
		start := time.Now()
		if !insist(c, i, func(n *nodes.Node) bool { a, err := n.Register(in); return err == nil && a.OK() }) {
			t.Errorf("%s cannot be registered", in.Key())
			return
		}
		took.add(time.Since(start))
		mu.Lock()
		acked[in.Service] = append(acked[in.Service], in.Key())
		mu.Unlock()
		pass(20 * time.Millisecond)
	})
	return func() map[string][]string { end(); return acked }
}

// TestSnapshotsOfManyInstances_HoldUpNeitherBeatsNorWrites forces snapshots of a large
// state again and again: writes and beats must go on, nobody be evicted, and no node take
// more than the memory that docs/operations.md names.
func TestSnapshotsOfManyInstances_HoldUpNeitherBeatsNorWrites(t *testing.T) {
	row := figures.Track(t, "snapshots of many instances")
	n, interval := either(3000, 100_000), either(2*time.Second, 20*time.Second)
	c := nodes.Start(t, binary, 3, "--snapshot-entries", "1", "--snapshot-interval", either("500ms", "30s"))
	all := crowdOf(n, nodes.Instance{Interval: interval, Timeout: 3 * interval, Delete: 6 * interval})
	registerAll(t, c, all)
	if t.Failed() {
		return
	}
	first, err := c.Leader().Metric("rollcall_raft_snapshot_index")
	if err != nil {
		t.Fatal(err)
	}
	var beats, writes times
	writers := writeOn(t, c, &writes)
	largest := 0
	watcher := background(t, 1, func(int, int) {
		for _, n := range c.Nodes() {
			if rss, err := n.RSS(); err == nil {
				largest = max(largest, rss)
			}
		}
		pass(200 * time.Millisecond)
	})
	for range 5 {
		beatRound(t, c, all, interval, &beats)
	}
	acked := writers()
	watcher()
	row.Rounds = 1
	row.Wrote(len(writes.all), checkAcked(t, c, acked), 0)
	report(t, c, row, &beats, &writes, n, largest, first)
}

// background runs clients until what it returns is called, which waits for them.
func background(t *testing.T, clients int, once func(client, round int)) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	for k := range clients {
		wg.Go(func() {
			for i := 0; ctx.Err() == nil && !t.Failed(); i++ {
				once(k, i)
			}
		})
	}
	stop = sync.OnceFunc(func() { cancel(); wg.Wait() })
	t.Cleanup(stop)
	return stop
}

// mostMemory is what a node may take for so many instances with a kilobyte of metadata:
// see docs/operations.md.
func mostMemory(instances int) int { return 256<<20 + instances*4<<10 }

// report judges what was seen and notes it in the row.
func report(t *testing.T, c *nodes.Cluster, row *figures.Row, beats, writes *times, instances, largest int, first float64) {
	t.Helper()
	b99, bMost := beats.p99()
	w99, wMost := writes.p99()
	row.Note = fmt.Sprintf("%d instances; %d beats: p99 %s, longest %s; writes: p99 %s, longest %s; largest node %d MiB",
		instances, len(beats.all), b99.Round(time.Millisecond), bMost.Round(time.Millisecond),
		w99.Round(time.Millisecond), wMost.Round(time.Millisecond), largest>>20)
	t.Log(row.Note)
	last, err := c.Leader().Metric("rollcall_raft_snapshot_index")
	if err != nil || last <= first {
		t.Errorf("newest snapshot %v, at the start %v, %v: none was taken meanwhile", last, first, err)
	}
	if b99 > time.Second || w99 > time.Second {
		t.Errorf("99 of 100 beats within %s, of writes within %s, want a second", b99, w99)
	}
	if most := mostMemory(instances); largest > most {
		t.Errorf("a node took %d MiB, want %d at most", largest>>20, most>>20)
	}
	row.FalseEvictions = 0
	for _, n := range c.Nodes() {
		evicted, err := n.Metric("rollcall_health_evictions_total")
		flipped, failed := n.Metric(`rollcall_health_flips_total{to="unhealthy"}`)
		if err != nil || failed != nil || evicted > 0 || flipped > 0 {
			t.Errorf("%s evicted %v and flipped %v, %v %v", n.ID, evicted, flipped, err, failed)
			row.FalseEvictions += int(evicted + flipped)
		}
	}
}
