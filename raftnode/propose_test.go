package raftnode

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/rollcall-io/rollcall/internal/wire"
	"github.com/rollcall-io/rollcall/internal/wire/peerpb"
	"github.com/rollcall-io/rollcall/raftnode/batch"
	"github.com/rollcall-io/rollcall/registry"
)

func TestPropose_PacksAndForwardsManyCallers(t *testing.T) {
	c := startCluster(t, 3, nil)
	const callers, each = 30, 20
	var group sync.WaitGroup
	for k := range callers {
		group.Go(func() {
			for i := range each {
				if _, err := c.nodes[k%3].Propose(context.Background(), instance(k*each+i)); err != nil {
					t.Errorf("caller %d: %v", k, err)
					return
				}
			}
		})
	}
	group.Wait()
	for _, n := range c.nodes {
		eventually(t, 10*time.Second, "all writes", func() error {
			if got := n.fsm.count(); got != callers*each {
				return errors.New("missing")
			}
			return nil
		})
	}
}

func TestPropose_UnchangedNeedsNoEntry(t *testing.T) {
	var asked atomic.Int64
	var c *testCluster
	c = newTestCluster(t, 3, func(i int, o *Options) {
		o.Unchanged = func(r registry.Register) (registry.Result, bool) {
			asked.Add(1)
			f := c.nodes[i].fsm
			if f.times(r) == 0 {
				return registry.Result{}, false
			}
			return registry.Result{Index: f.Applied()}, true
		}
	})
	c.form()
	for i, n := range c.nodes {
		for range 3 {
			if _, err := n.Propose(context.Background(), instance(i)); err != nil {
				t.Fatal(err)
			}
		}
		if got := n.fsm.times(instance(i)); got != 1 {
			t.Errorf("%s: %d entries for three equal registrations, want 1", n.opts.NodeID, got)
		}
	}
	if asked.Load() == 0 {
		t.Error("nobody was asked")
	}
}

// TestPropose_UnchangedWaitsForItsKey asks while a command of the key is on its way:
// the state that will be is not known then.
func TestPropose_UnchangedWaitsForItsKey(t *testing.T) {
	n := &Node{proposer: newProposer("n1", nil, nil, nil, newMetrics(nil))}
	n.opts.Unchanged = func(registry.Register) (registry.Result, bool) { return registry.Result{Index: 1}, true }
	n.proposer.open(1)
	g := batch.NewGroup(1)
	g.Items[0].Key, g.Items[0].HasKey = registry.KeyOf(instance(1))
	n.proposer.queue.Put(g, batch.Client)
	if _, same := n.unchanged(instance(1)); same {
		t.Error("answered beside a command of the same key")
	}
	if _, same := n.unchanged(instance(2)); !same {
		t.Error("another key is held up")
	}
	n.proposer.close()
	if _, same := n.unchanged(instance(1)); !same {
		t.Error("held up by a command that was refused")
	}
}

// TestPropose_OneHop sends a forwarded command to a node that does not lead: it is not
// passed on, the leader is named.
func TestPropose_OneHop(t *testing.T) {
	c := startCluster(t, 3, nil)
	l := c.leader()
	f, other := c.nodes[c.follower()], c.nodes[l]
	encoded, err := wire.EncodeCommand(instance(1))
	if err != nil {
		t.Fatal(err)
	}
	client, err := other.peers.connected(context.Background(), f.Address())
	if err != nil {
		t.Fatal(err)
	}
	resp, err := client.Propose(context.Background(), &peerpb.ProposeRequest{
		Commands: encoded, Lengths: []uint32{uint32(len(encoded))}, RemainingMs: []uint32{1000},
	})
	if err != nil {
		t.Fatal(err)
	}
	if !resp.NotLeader || resp.Leader.GetId() != c.nodes[l].opts.NodeID || resp.Leader.Address != c.nodes[l].Address() {
		t.Fatalf("answer %+v", resp)
	}
	if f.fsm.count() != 0 {
		t.Fatal("it was proposed all the same")
	}
	// A forwarder with an old view tries the named leader, once.
	stale := &view{id: f.opts.NodeID, address: f.Address(), term: 1, replaced: make(chan struct{})}
	third := c.nodes[3-l-indexOf(c, f)]
	g := batch.NewGroup(1)
	g.Items[0].Encoded, g.Items[0].Deadline = encoded, time.Now().Add(time.Second)
	third.forwarder.call([]*batch.Item{&g.Items[0]}, stale)
	outcomes, err := g.Wait(context.Background())
	if err != nil || outcomes[0].Err != nil || outcomes[0].Result.Index == 0 {
		t.Fatalf("by the hint: %+v, %v", outcomes, err)
	}
}

func indexOf(c *testCluster, n *testNode) int {
	for i := range c.nodes {
		if c.nodes[i] == n {
			return i
		}
	}
	return -1
}

func TestPropose_LeaderRefusesWhatItCannotRead(t *testing.T) {
	c := startCluster(t, 3, nil)
	l := c.nodes[c.leader()]
	client, err := c.nodes[c.follower()].peers.connected(context.Background(), l.Address())
	if err != nil {
		t.Fatal(err)
	}
	before := l.fsm.Applied()
	for name, req := range map[string]*peerpb.ProposeRequest{
		"nothing":       {},
		"garbage":       {Commands: []byte{0xff, 1, 2}, Lengths: []uint32{3}, RemainingMs: []uint32{100}},
		"too short":     {Commands: []byte{1}, Lengths: []uint32{2}, RemainingMs: []uint32{100}},
		"too long":      {Commands: []byte{1, 2, 3}, Lengths: []uint32{0}, RemainingMs: []uint32{100}},
		"columns":       {Commands: []byte{1}, Lengths: []uint32{1}},
		"huge length":   {Commands: []byte{1}, Lengths: []uint32{1 << 31}, RemainingMs: []uint32{1}},
		"many commands": {Lengths: make([]uint32, 5000), RemainingMs: make([]uint32, 5000)},
	} {
		if _, err := client.Propose(context.Background(), req); status.Code(err) != codes.InvalidArgument {
			t.Errorf("%s: %v", name, err)
		}
	}
	if after := l.fsm.Applied(); after != before {
		t.Errorf("the log grew from %d to %d", before, after)
	}
}

func TestPropose_FullDiskRefusesClientsOnly(t *testing.T) {
	var free atomic.Uint64
	free.Store(600 << 20)
	c := startCluster(t, 3, func(_ int, o *Options) {
		o.MinFreeWrites = 512 << 20
		o.FreeSpace = func(string) (uint64, error) { return free.Load(), nil }
	})
	l := c.nodes[c.leader()]
	setFree := func(bytes uint64) { // at once, and for all measurements that come
		free.Store(bytes)
		l.disk.look(bytes)
	}
	setFree(500 << 20)
	for _, n := range c.nodes {
		if _, err := n.Propose(context.Background(), instance(1)); !errors.Is(err, registry.ErrDiskFull) {
			t.Errorf("%s: %v", n.opts.NodeID, err)
		}
	}
	_, term, _ := l.Leader()
	if _, err := l.ProposeAsLeader(context.Background(), term, registry.NoOp{}); err != nil {
		t.Errorf("leader work: %v", err)
	}
	setFree(600 << 20)
	if _, err := l.Propose(context.Background(), instance(1)); err != nil {
		t.Errorf("with room again: %v", err)
	}
}

func TestPropose_HoldersAreBounded(t *testing.T) {
	c := newTestCluster(t, 3, func(_ int, o *Options) { o.MaxHolders, o.WriteTimeout = 2, time.Hour })
	n := c.start(0)
	var group sync.WaitGroup
	var refused atomic.Int64
	for range 10 {
		group.Go(func() {
			_, err := n.Propose(context.Background(), instance(1))
			switch {
			case errors.Is(err, registry.ErrNoLeader):
				refused.Add(1)
			case !errors.Is(err, registry.ErrShuttingDown): // those who may wait
				t.Errorf("error %v", err)
			}
		})
	}
	eventually(t, 10*time.Second, "eight are refused and two wait", func() error {
		if r, h := refused.Load(), n.holders.Load(); r != 8 || h != 2 {
			return fmt.Errorf("%d and %d", r, h)
		}
		return nil
	})
	c.stop(0)
	group.Wait()
}

func TestPropose_EndsWhenTheNodeStops(t *testing.T) {
	c := newTestCluster(t, 3, func(_ int, o *Options) { o.WriteTimeout = time.Hour })
	n := c.start(0)
	result := make(chan error, 1)
	go func() {
		_, err := n.Propose(context.Background(), instance(1))
		result <- err
	}()
	eventually(t, 10*time.Second, "a holder", func() error {
		if n.holders.Load() == 0 {
			return errors.New("none")
		}
		return nil
	})
	c.stop(0)
	if err := <-result; !errors.Is(err, registry.ErrShuttingDown) {
		t.Errorf("waiting: %v", err)
	}
	if _, err := n.Propose(context.Background(), instance(1)); !errors.Is(err, registry.ErrShuttingDown) {
		t.Errorf("afterwards: %v", err)
	}
}

func TestForward_AnswersAtOnceWhenTheLeaderWasReplaced(t *testing.T) {
	c := startCluster(t, 3, nil)
	f := c.nodes[c.follower()]
	old := f.tracker.load()
	cancelled := make(chan struct{})
	stop := f.cancelWhenReplaced(old, func() { close(cancelled) })
	defer stop()
	if err := c.nodes[c.leader()].transfer(context.Background()); err != nil {
		t.Fatal(err)
	}
	select {
	case <-cancelled:
	case <-time.After(15 * time.Second):
		t.Fatalf("view was %+v and is %+v", old, f.tracker.load())
	}
}
