package raftnode

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"github.com/rollcall-io/rollcall/registry"
)

// fill registers instances through a node with metadata of so many bytes each. A write
// that an election got in the way of is made again.
func (c *testCluster) fill(node, from, to, size int) {
	c.t.Helper()
	var group sync.WaitGroup
	for k := range 16 {
		group.Go(func() {
			for i := from + k; i < to; i += 16 {
				r := instance(i)
				if size > 0 {
					r.Spec.Metadata = registry.NewMetadata([]registry.Pair{{Key: "text", Value: strings.Repeat("x", size)}})
				}
				_, err := c.nodes[node].Propose(context.Background(), r)
				for try := 0; try < 10 && (errors.Is(err, registry.ErrUncertain) || errors.Is(err, registry.ErrNoLeader)); try++ {
					_, err = c.nodes[node].Propose(context.Background(), r)
				}
				if err != nil {
					c.t.Errorf("write %d: %v", i, err)
					return
				}
			}
		})
	}
	group.Wait()
}

// logBytes is the size of the entries that a node keeps.
func (n *testNode) logBytes() (entries, bytes uint64, err error) {
	first, err := n.store.Log.FirstIndex()
	if err != nil {
		return 0, 0, err
	}
	last, err := n.store.Log.LastIndex()
	if err != nil {
		return 0, 0, err
	}
	for i := first; i <= last; i++ {
		var l raft.Log
		if err := n.store.Log.GetLog(i, &l); err != nil {
			return 0, 0, err
		}
		bytes += uint64(len(l.Data))
	}
	return last - first + 1, bytes, nil
}

// TestSnapshot_BytesBoundTheLogAfterManySmallEntries: small entries at first, then large
// ones. What counts for the bytes kept is the size of the newest entries, not the average.
func TestSnapshot_BytesBoundTheLogAfterManySmallEntries(t *testing.T) {
	const keep = 512 << 10
	c := startCluster(t, 1, func(_ int, o *Options) {
		o.SnapshotInterval, o.SnapshotEntries = 100*time.Millisecond, 1<<40
		o.SnapshotBytes, o.TrailingBytes = 1<<20, keep
	})
	n := c.nodes[0]
	for i := range 300 {
		if _, err := n.Propose(context.Background(), instance(i)); err != nil {
			t.Fatal(err)
		}
	}
	if n.Status().SnapshotIndex != 0 {
		t.Fatal("a snapshot of next to nothing")
	}
	c.fill(0, 300, 500, 40_000) // 8 MB
	eventually(t, 15*time.Second, "a log within its bytes", func() error {
		entries, bytes, err := n.logBytes()
		// What was appended since the last snapshot is kept as well.
		if err == nil && bytes > keep+(1<<20)+(1<<20) {
			err = fmt.Errorf("%d entries of %d KiB are kept, snapshot at %d of %d", entries, bytes>>10, n.Status().SnapshotIndex, n.Status().LastIndex)
		}
		return err
	})
}

// TestSnapshot_BytesThatComeWhileOneIsWrittenCount: they were taken for part of it, and
// stayed in the log until as many as a snapshot is worth had come once more.
func TestSnapshot_BytesThatComeWhileOneIsWrittenCount(t *testing.T) {
	c := startCluster(t, 1, func(_ int, o *Options) {
		o.SnapshotEntries, o.SnapshotInterval = 1<<40, 100*time.Millisecond
		o.SnapshotBytes, o.TrailingBytes = 100_000, 1<<20
	})
	n := c.nodes[0]
	var once sync.Once
	n.fsm.mu.Lock()
	n.fsm.writing = func() { once.Do(func() { c.fill(0, 20, 60, 10_000) }) }
	n.fsm.mu.Unlock()
	c.fill(0, 0, 20, 10_000)
	eventually(t, 15*time.Second, "a snapshot of what came beside the first", func() error {
		if got := n.fsm.count(); got < 60 {
			return fmt.Errorf("%d of 60 written", got)
		}
		last, snapshot := n.Status().LastIndex, n.Status().SnapshotIndex
		entries, bytes, err := n.logBytes()
		if err == nil && n.store.After(snapshot) >= 100_000 {
			err = fmt.Errorf("snapshot at %d of %d, %d entries of %d bytes", snapshot, last, entries, bytes)
		}
		return err
	})
}

// TestSnapshot_ReachesALaggingFollowerOverASlowLink: a node comes back when the log that
// it lacks is gone, over a link that takes seconds for the snapshot. Writes go on, the
// leader stays.
func TestSnapshot_ReachesALaggingFollowerOverASlowLink(t *testing.T) {
	c := startCluster(t, 3, func(_ int, o *Options) {
		o.SnapshotInterval, o.SnapshotEntries, o.TrailingLogs = 100*time.Millisecond, 100, 300
	})
	f := c.follower()
	c.stop(f)
	before := c.nodes[f].opts
	c.fill(c.leader(), 0, 10_000, 0)
	l := c.leader() // on a busy machine not the first one
	other := 3 - l - f
	eventually(t, 20*time.Second, "a log cut off", func() error {
		first, err := c.nodes[l].store.Log.FirstIndex()
		if err == nil && first < 100 {
			err = fmt.Errorf("first index %d", first)
		}
		return err
	})
	_, term, _ := c.nodes[l].Leader()
	c.links.setSlow(c.nodes[l].opts.PeerAddr, before.PeerAddr, 150<<10)
	n := c.start(f)
	began := time.Now()
	tick := time.NewTicker(20 * time.Millisecond) // less than the entries kept, over the time it takes
	defer tick.Stop()
	for i := 10_000; n.Ready() != nil; i++ {
		<-tick.C
		if time.Since(began) > time.Minute {
			t.Fatalf("not ready after %v: %+v", time.Since(began), n.Status())
		}
		if _, err := c.nodes[other].Propose(context.Background(), instance(i)); err != nil {
			t.Fatalf("write beside the snapshot: %v", err)
		}
	}
	t.Logf("caught up in %v with a snapshot at %d", time.Since(began), n.Status().SnapshotIndex)
	if n.Status().SnapshotIndex == 0 || n.fsm.count() < 10_000 {
		t.Errorf("%d instances, status %+v", n.fsm.count(), n.Status())
	}
	if _, now, self := c.nodes[l].Leader(); !self || now != term {
		t.Errorf("the leader did not stay: term %d, was %d", now, term)
	}
}
