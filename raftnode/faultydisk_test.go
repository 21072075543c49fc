package raftnode

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"github.com/rollcall-io/rollcall/registry"
)

// faultyDisk is a log store whose appends hang or take long.
type faultyDisk struct {
	raft.LogStore

	mu   sync.Mutex
	gate chan struct{} // appends wait until it is closed
	slow time.Duration
}

func (d *faultyDisk) wrap(under raft.LogStore) raft.LogStore {
	d.LogStore = under
	return d
}

// hang makes appends hang until the returned function is called.
func (d *faultyDisk) hang() (release func()) {
	gate := make(chan struct{})
	d.mu.Lock()
	d.gate = gate
	d.mu.Unlock()
	var once sync.Once
	return func() {
		once.Do(func() {
			d.mu.Lock()
			d.gate = nil
			d.mu.Unlock()
			close(gate)
		})
	}
}

func (d *faultyDisk) setSlow(by time.Duration) {
	d.mu.Lock()
	d.slow = by
	d.mu.Unlock()
}

func (d *faultyDisk) StoreLogs(entries []*raft.Log) error {
	d.mu.Lock()
	gate, slow := d.gate, d.slow
	d.mu.Unlock()
	if gate != nil {
		<-gate
	}
	if slow > 0 {
		<-time.After(slow)
	}
	return d.LogStore.StoreLogs(entries)
}

// faultyCluster is a cluster of three whose disks can fail, under a load of writes.
type faultyCluster struct {
	*testCluster
	disks  [3]*faultyDisk
	frees  [3]atomic.Uint64
	next   atomic.Int64
	mu     sync.Mutex
	acked  []registry.Register
	failed []error
}

func startFaulty(t *testing.T, change func(o *Options)) *faultyCluster {
	f := &faultyCluster{}
	for i := range f.disks {
		f.disks[i] = &faultyDisk{}
		f.frees[i].Store(1 << 40)
	}
	f.testCluster = startCluster(t, 3, func(i int, o *Options) {
		o.Disk = f.disks[i].wrap
		o.FreeSpace = func(string) (uint64, error) { return f.frees[i].Load(), nil }
		if change != nil {
			change(o)
		}
	})
	return f
}

// write makes one write on a node and notes what came of it.
func (f *faultyCluster) write(i int) error {
	r := instance(int(f.next.Add(1)))
	_, err := f.nodes[i].Propose(context.Background(), r)
	f.mu.Lock()
	defer f.mu.Unlock()
	if err != nil {
		f.failed = append(f.failed, err)
		return err
	}
	f.acked = append(f.acked, r)
	return nil
}

// load writes on some nodes, one write after the other on each, until stop.
func (f *faultyCluster) load(nodes ...int) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var group sync.WaitGroup
	for _, i := range nodes {
		group.Go(func() {
			tick := time.NewTicker(10 * time.Millisecond)
			defer tick.Stop()
			for ctx.Err() == nil {
				f.write(i)
				<-tick.C
			}
		})
	}
	return func() { cancel(); group.Wait() }
}

// holdAll waits until every node is ready and holds what was acknowledged, once.
func (f *faultyCluster) holdAll() {
	f.t.Helper()
	f.waitReady()
	for _, n := range f.nodes {
		eventually(f.t, 10*time.Second, "all acknowledged writes", func() error {
			for _, r := range f.acked {
				if got := n.fsm.times(r); got != 1 {
					return fmt.Errorf("%s holds %s %d times", n.opts.NodeID, nameOf(r), got)
				}
			}
			return nil
		})
	}
}

// TestHungDisk_LeaderIsReplacedAndFollowsLater: the leader's disk hangs without an error.
// It falls silent after five seconds, and neither leads, takes beats nor calls itself
// ready, although its Raft cannot learn that it was replaced until the disk returns.
func TestHungDisk_LeaderIsReplacedAndFollowsLater(t *testing.T) {
	f := startFaulty(t, func(o *Options) {
		o.OnBeats = func(context.Context, registry.BeatBatch) (registry.BeatAnswer, error) {
			return registry.BeatAnswer{}, nil
		}
	})
	l := f.leader()
	old, others := f.nodes[l], []int{(l + 1) % 3, (l + 2) % 3}
	release := f.disks[l].hang()
	defer release()
	began := time.Now()
	stop := f.load(0, 1, 2)
	eventually(t, 30*time.Second, "a write on each of the others", func() error {
		for _, i := range others {
			if id, _, _ := f.nodes[i].Leader(); id == "" || id == old.opts.NodeID {
				return fmt.Errorf("leader %q", id)
			}
			if err := f.write(i); err != nil {
				return err
			}
		}
		return nil
	})
	t.Logf("writes again after %v", time.Since(began).Round(time.Millisecond))
	if _, _, self := old.Leader(); self {
		t.Error("the old one still calls itself leader")
	}
	if err := old.Ready(); !errors.Is(err, registry.ErrNotReady) {
		t.Errorf("the old one is ready: %v", err)
	}
	if _, err := old.SendBeats(context.Background(), registry.BeatBatch{}); err == nil {
		t.Error("the old one acknowledges beats that nobody else hears of")
	}
	if _, err := old.ReadIndex(context.Background()); err == nil {
		t.Error("the old one gives a read index")
	}
	release()
	stop()
	f.holdAll()
	if got := f.leader(); got == l {
		t.Log("it was elected again")
	}
}

// TestHungDisk_FollowerCostsTheOthersNothing: the disk of a follower hangs.
func TestHungDisk_FollowerCostsTheOthersNothing(t *testing.T) {
	f := startFaulty(t, nil)
	l := f.leader()
	v, other := (l+1)%3, (l+2)%3
	_, term, _ := f.nodes[l].Leader()
	release := f.disks[v].hang()
	defer release()
	stop := f.load(l, other)
	eventually(t, 20*time.Second, "the node notices", func() error {
		if f.nodes[v].Ready() == nil {
			return errors.New("ready")
		}
		return nil
	})
	stop()
	if len(f.failed) > 0 || len(f.acked) < 20 {
		t.Errorf("%d writes acknowledged, %d failed: %v", len(f.acked), len(f.failed), f.failed)
	}
	if id, now, _ := f.nodes[other].Leader(); id != f.nodes[l].opts.NodeID || now != term {
		t.Errorf("leader is %s in term %d, was %s in %d", id, now, f.nodes[l].opts.NodeID, term)
	}
	release()
	f.holdAll()
}

// TestSlowDisk_LeaderStays: each append takes more than half of an election timeout, on the
// leader first and then on a follower. It costs time, not leadership.
func TestSlowDisk_LeaderStays(t *testing.T) {
	f := startFaulty(t, func(o *Options) { o.ElectionTimeout, o.WriteTimeout = 2*time.Second, 15*time.Second })
	l := f.leader()
	_, term, _ := f.nodes[l].Leader()
	for _, slow := range []int{l, (l + 1) % 3} {
		f.disks[slow].setSlow(1200 * time.Millisecond)
		stop := f.load(0, 1, 2)
		stays(t, 5*time.Second, "the same leader", func() error {
			if _, now, self := f.nodes[l].Leader(); !self || now != term {
				return fmt.Errorf("term %d, leads %v", now, self)
			}
			return nil
		})
		f.disks[slow].setSlow(0)
		stop()
	}
	if len(f.failed) > 0 {
		t.Errorf("%d writes failed: %v", len(f.failed), f.failed[0])
	}
	f.holdAll()
}

// TestDiskSpace_LimitsActByThemselves lets the free space shrink as the node measures it.
func TestDiskSpace_LimitsActByThemselves(t *testing.T) {
	f := startFaulty(t, func(o *Options) { o.MinFreeWrites, o.MinFreeLead = 512<<20, 128<<20 })
	l := f.leader()
	f.frees[l].Store(500 << 20)
	eventually(t, 20*time.Second, "writes are refused", func() error {
		for i := range f.nodes {
			if err := f.write(i); !errors.Is(err, registry.ErrDiskFull) {
				return fmt.Errorf("node %d: %w", i, errors.Join(errors.New("not refused"), err))
			}
		}
		return nil
	})
	f.frees[l].Store(100 << 20)
	eventually(t, 20*time.Second, "another leads", func() error {
		if i := f.leader(); i == l {
			return errors.New("it still leads")
		}
		return f.write(l)
	})
	// Everywhere too little: leadership stays where it is, and does not go round.
	for i := range f.frees {
		f.frees[i].Store(100 << 20)
	}
	eventually(t, 20*time.Second, "all measured", func() error {
		for _, n := range f.nodes {
			if !n.disk.low.Load() {
				return errors.New("not yet")
			}
		}
		return nil
	})
	// One more hand-over may have begun before the word of the others came round.
	eventually(t, 40*time.Second, "the leader stays for longer than a measurement", func() error {
		i := f.leader()
		_, term, _ := f.nodes[i].Leader()
		for deadline := time.Now().Add(2 * diskInterval); time.Now().Before(deadline); {
			if _, now, self := f.nodes[i].Leader(); !self || now != term {
				return errors.New("it went on")
			}
			<-time.After(10 * time.Millisecond)
		}
		return nil
	})
}
