package e2e

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/rollcall-io/rollcall/test/e2e/nodes"
	"github.com/rollcall-io/rollcall/test/faults/figures"
)

// preload registers n instances in services of 500, through all nodes, and returns their
// keys by service.
func preload(t *testing.T, c *nodes.Cluster, n int) map[string][]string {
	t.Helper()
	acked := map[string][]string{}
	var mu sync.Mutex
	var wg sync.WaitGroup
	const clients = 24
	for k := range clients {
		wg.Go(func() {
			for i := k; i < n; i += clients {
				in := nodes.Instance{Service: fmt.Sprintf("bulk-%d", i/500), IP: "10.1.0.1", Port: 1 + i}.Lasting()
				for range 50 {
					if a, err := c.Nodes()[i%3].Register(in); err == nil && a.OK() {
						mu.Lock()
						acked[in.Service] = append(acked[in.Service], in.Key())
						mu.Unlock()
						break
					}
				}
			}
		})
	}
	wg.Wait()
	return acked
}

// unfinished are the snapshots that a node is writing, or was when it was killed.
func unfinished(t *testing.T, n *nodes.Node) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(n.Dir, "snapshots", "*.tmp"))
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// killInSnapshot kills a node soon after it has begun to write a snapshot and tells
// whether it was still at it.
func killInSnapshot(t *testing.T, n *nodes.Node) (inTheMiddle bool) {
	t.Helper()
	before := map[string]bool{}
	for _, old := range unfinished(t, n) {
		before[old] = true
	}
	fresh := func() bool {
		for _, s := range unfinished(t, n) {
			if !before[s] {
				return true
			}
		}
		return false
	}
	tick := time.NewTicker(200 * time.Microsecond)
	defer tick.Stop()
	for deadline := time.Now().Add(30 * time.Second); !fresh(); <-tick.C {
		if time.Now().After(deadline) {
			t.Fatalf("%s begins no snapshot", n.ID)
		}
	}
	pass(rand.N(4 * time.Millisecond))
	n.Kill()
	return fresh()
}

// TestKilledInASnapshot_StartsWithTheSameState kills one node after another while it
// writes a snapshot: each comes back with what it had, and at last all of them at once,
// with nobody to ask.
func TestKilledInASnapshot_StartsWithTheSameState(t *testing.T) {
	row := figures.Track(t, "killed while a snapshot is written")
	c := nodes.Start(t, binary, 3, "--snapshot-interval", "300ms", "--snapshot-entries", "50", "--trailing-logs", "200")
	acked := preload(t, c, either(4000, 20000))
	writers := c.Write(4, 5*time.Millisecond, c.Nodes)
	middle := 0
	for round := range either(6, 50) {
		victim := c.Nodes()[round%3]
		if killInSnapshot(t, victim) {
			middle++
		}
		victim.Start()
		c.WaitReady(victim)
		row.Rounds++
	}
	row.Outage(writers.LongestGap())
	for service, keys := range writers.Stop() {
		acked[service] = keys
	}
	checkAcked(t, c, acked)
	for _, n := range c.Nodes() {
		n.Kill()
	}
	for _, n := range c.Nodes() {
		n.Start()
	}
	c.WaitReady(c.Nodes()...)
	total := checkAcked(t, c, acked)
	wantSameState(t, c)
	row.Wrote(total, total, 0)
	row.Note = fmt.Sprintf("%d of %d in the middle", middle, row.Rounds)
	t.Logf("%d of %d killed in the middle of a snapshot, %d instances on all nodes", middle, row.Rounds, total)
	if middle == 0 {
		t.Error("not one node was killed in the middle of a snapshot")
	}
}

// wantSameState checks that no node has found its state to differ from the leader's.
func wantSameState(t *testing.T, c *nodes.Cluster) {
	t.Helper()
	for _, n := range c.Nodes() {
		if diverged, err := n.Metric("rollcall_fsm_diverged"); err != nil || diverged != 0 {
			t.Errorf("%s: diverged %v, %v", n.ID, diverged, err)
		}
	}
}
