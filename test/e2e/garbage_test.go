package e2e

import (
	"crypto/rand"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rollcall-io/rollcall/test/e2e/nodes"
	"github.com/rollcall-io/rollcall/test/faults/figures"
)

// TestGarbageForAWhile_MemoryIsFlatAndTheLeaderStays keeps the peer ports of all nodes
// busy with noise while clients write.
func TestGarbageForAWhile_MemoryIsFlatAndTheLeaderStays(t *testing.T) {
	t.Setenv("GOGC", "100") // garbage of its own, which may pile up otherwise, is not what is looked at
	row := figures.Track(t, "garbage on the peer port")
	c := nodes.Start(t, binary, 3, unhurried...)
	leader := c.Leader()
	writers := c.Write(4, 20*time.Millisecond, c.Nodes)
	pass(2 * time.Second)
	before, peak := memory(t, c), 0
	var sent atomic.Int64
	var strangers sync.WaitGroup
	end := time.Now().Add(either(10*time.Second, time.Minute))
	for _, n := range c.Nodes() {
		for range 4 {
			strangers.Go(func() {
				noise := make([]byte, 256<<10)
				_, _ = rand.Read(noise) // never fails
				for time.Now().Before(end) {
					conn, err := net.DialTimeout("tcp", n.Peer, time.Second)
					if err != nil {
						continue // its queue is full: the next one
					}
					_ = conn.SetDeadline(time.Now().Add(time.Second))
					for k := 0; k < 4 && err == nil; k++ { // until it is cut off
						_, err = conn.Write(noise)
					}
					conn.Close()
					sent.Add(1)
					pass(10 * time.Millisecond)
				}
			})
		}
	}
	for time.Now().Before(end) {
		peak = max(peak, memory(t, c))
		pass(200 * time.Millisecond)
	}
	strangers.Wait()
	gap := writers.LongestGap()
	if now := c.Leader(); now != leader {
		t.Errorf("%s leads after the noise, it was %s", now.ID, leader.ID)
	}
	if grown := peak - before; grown > 3*32<<20 {
		t.Errorf("the nodes' memory grew by %d MiB under noise, want 32 MiB each at most", grown>>20)
	}
	if gap > time.Second {
		t.Errorf("no write for %s under noise, want 1 s at most", gap)
	}
	total := checkAcked(t, c, writers.Stop())
	row.Rounds = int(sent.Load())
	row.Outage(gap)
	row.Wrote(writers.Sent(), total, 0)
	row.Note = fmt.Sprintf("memory of three nodes %d MiB before, %d MiB at most", before>>20, peak>>20)
	t.Logf("%d connections; %s", sent.Load(), row.Note)
}

// memory is that of all nodes.
func memory(t *testing.T, c *nodes.Cluster) (total int) {
	t.Helper()
	for _, n := range c.Nodes() {
		rss, err := n.RSS()
		if err != nil {
			t.Fatal(err)
		}
		total += rss
	}
	return total
}
