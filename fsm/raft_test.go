package fsm

import (
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"github.com/rollcall-io/rollcall/internal/wire"
	"github.com/rollcall-io/rollcall/registry"
)

// raftNode is a one-node cluster in memory that outlives its Raft.
type raftNode struct {
	store     *raft.InmemStore
	snapshots *raft.InmemSnapshotStore
}

func (n *raftNode) start(t *testing.T, f *FSM) (r *raft.Raft, stop func()) {
	t.Helper()
	config := raft.DefaultConfig()
	config.LocalID = "n1"
	config.Logger = hclog.NewNullLogger()
	config.HeartbeatTimeout, config.ElectionTimeout = 50*time.Millisecond, 50*time.Millisecond
	config.LeaderLeaseTimeout, config.CommitTimeout = 50*time.Millisecond, time.Millisecond
	_, transport := raft.NewInmemTransport("n1")
	r, err := raft.NewRaft(config, f, n.store, n.store, n.snapshots, transport)
	if err != nil {
		t.Fatal(err)
	}
	r.BootstrapCluster(raft.Configuration{Servers: []raft.Server{{ID: "n1", Address: "n1"}}})
	await(t, "a leader", func() bool { return r.State() == raft.Leader })
	return r, func() {
		if err := r.Shutdown().Error(); err != nil {
			t.Error(err)
		}
	}
}

func propose(t *testing.T, r *raft.Raft, c registry.Command) registry.Result {
	t.Helper()
	b, err := wire.EncodeCommand(c)
	if err != nil {
		t.Fatal(err)
	}
	future := r.Apply(wire.PackEntry("n1", r.CurrentTerm(), time.Now().UnixMilli(), [][]byte{b}), time.Second)
	if err := future.Error(); err != nil {
		t.Fatal(err)
	}
	return future.Response().([]registry.Result)[0]
}

// Under Raft itself: results come back, configuration entries count, and a restart
// from snapshot and log leads to the same state.
func TestFSM_UnderRaft(t *testing.T) {
	n := &raftNode{raft.NewInmemStore(), raft.NewInmemSnapshotStore()}
	first := newFSM(t, Options{})
	r, stop := n.start(t, first)
	if res := propose(t, r, register("orders", "10.0.0.1", 80)); res.Err != nil || res.Index != first.Applied() {
		t.Fatalf("%+v at %d", res, first.Applied())
	}
	if err := r.AddNonvoter("n2", "n2", 0, time.Second).Error(); err != nil {
		t.Fatal(err)
	}
	if got := r.LastIndex(); first.Applied() != got {
		t.Errorf("applied %d, the last index, of a configuration, is %d", first.Applied(), got)
	}
	if err := r.Snapshot().Error(); err != nil {
		t.Fatal(err)
	}
	propose(t, r, registry.Deregister{Key: spec("10.0.0.1", 80).In(key("orders"))})
	if err := r.RemoveServer("n2", 0, time.Second).Error(); err != nil {
		t.Fatal(err)
	}
	stop()

	second := newFSM(t, Options{})
	_, stop = n.start(t, second)
	defer stop()
	await(t, "the log is applied again", func() bool { return second.Applied() >= first.Applied() })
	if got, want := contents(t, second), contents(t, first); got != want {
		t.Errorf("after a restart:\n%s\nwant\n%s", got, want)
	}
}
