package raftnode

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// BenchmarkProposer256Callers measures registrations by 256 callers on the leader of
// three nodes in this process, over loopback TCP with every fsync.
func BenchmarkProposer256Callers(b *testing.B) { benchmarkWrites(b, 256, false) }

// BenchmarkForward64Callers measures the same through both followers.
func BenchmarkForward64Callers(b *testing.B) { benchmarkWrites(b, 64, true) }

func benchmarkWrites(b *testing.B, callers int, followers bool) {
	c := startCluster(b, 3, func(_ int, o *Options) { o.ElectionTimeout = 700 * time.Millisecond })
	leader := c.leader()
	targets := []*testNode{c.nodes[leader]}
	if followers {
		targets = []*testNode{c.nodes[(leader+1)%3], c.nodes[(leader+2)%3]}
	}
	var next atomic.Int64
	var group sync.WaitGroup
	b.ReportAllocs()
	runtime.GC()
	b.ResetTimer()
	for k := range callers {
		group.Go(func() {
			n := targets[k%len(targets)]
			for i := next.Add(1); i <= int64(b.N); i = next.Add(1) {
				if _, err := n.Propose(context.Background(), instance(int(i)%50_000)); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	group.Wait()
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "writes/s")
}

// BenchmarkIdleFollowerWrite measures one write at a time through a follower.
func BenchmarkIdleFollowerWrite(b *testing.B) {
	c := startCluster(b, 3, func(_ int, o *Options) { o.ElectionTimeout = 700 * time.Millisecond })
	n := c.nodes[c.follower()]
	b.ResetTimer()
	for i := range b.N {
		if _, err := n.Propose(context.Background(), instance(i%50_000)); err != nil {
			b.Fatal(err)
		}
	}
}
