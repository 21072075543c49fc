package raftnode

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/hashicorp/raft"
)

// TestTransfer_LoopUnderLoadLosesNoAcknowledgedWrite hands leadership round while many
// write on all nodes.
func TestTransfer_LoopUnderLoadLosesNoAcknowledgedWrite(t *testing.T) {
	f := startFaulty(t, nil)
	stop := f.load(0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2)
	moved := 0
	for round := range 15 {
		eventually(t, 30*time.Second, "writes in between", func() error {
			f.mu.Lock()
			defer f.mu.Unlock()
			if len(f.acked) < 10*round {
				return fmt.Errorf("%d acknowledged in round %d", len(f.acked), round)
			}
			return nil
		})
		l := f.nodes[f.leader()]
		_, term, _ := l.Leader()
		if err := l.transfer(context.Background()); err != nil {
			t.Logf("transfer: %v", err)
			continue
		}
		moved++
		eventually(t, 15*time.Second, "another term", func() error {
			if _, now, _ := f.nodes[f.leader()].Leader(); now == term {
				return errors.New("same term")
			}
			return nil
		})
	}
	stop()
	t.Logf("%d transfers, %d writes acknowledged, %d failed", moved, len(f.acked), len(f.failed))
	for _, err := range f.failed {
		t.Logf("failed: %v", err)
	}
	if moved < 10 || len(f.failed) > len(f.acked)/20 {
		t.Errorf("%d transfers, %d writes acknowledged, %d failed", moved, len(f.acked), len(f.failed))
	}
	f.holdAll()
}

// TestMembership_RemovedNodeThatRunsOnDisturbsNobody: it was taken out of the
// configuration while its process goes on.
func TestMembership_RemovedNodeThatRunsOnDisturbsNobody(t *testing.T) {
	c := startCluster(t, 3, nil)
	l, f := c.leader(), c.follower()
	// A node announces itself when it starts, for some time: until then it comes back.
	eventually(t, 30*time.Second, "it stays removed", func() error {
		if err := c.nodes[l].raft.Load().RemoveServer(c.nodes[f].serverID(), 0, time.Second).Error(); err != nil {
			return err
		}
		for until := time.Now().Add(1200 * time.Millisecond); time.Now().Before(until); <-time.After(20 * time.Millisecond) {
			if got := len(c.nodes[l].Members()); got != 2 {
				return fmt.Errorf("%d members", got)
			}
		}
		return nil
	})
	_, term, _ := c.nodes[l].Leader()
	other := c.nodes[3-l-f]
	i := 0
	stays(t, 6*time.Second, "the leader and its term", func() error {
		i++
		if _, err := other.Propose(context.Background(), instance(i)); err != nil {
			return err
		}
		if _, now, self := c.nodes[l].Leader(); !self || now != term {
			return fmt.Errorf("term %d, was %d", now, term)
		}
		return nil
	})
	if got := len(c.nodes[l].Members()); got != 2 {
		t.Errorf("%d members, want 2", got)
	}
}

// TestTransferWatch_CountsOneTermOnly: a refusal of long ago, in another term, must not
// end the process at the next one.
func TestTransferWatch_CountsOneTermOnly(t *testing.T) {
	c := newTestCluster(t, 1, nil)
	n, err := Open(c.nodes[0].opts, newTestFSM())
	if err != nil {
		t.Fatal(err)
	}
	defer n.Stop(context.Background())
	n.watch.refused(time.Now().Add(-time.Minute))
	if err := n.Start(context.Background()); err != nil {
		t.Fatal(err)
	}
	eventually(t, 15*time.Second, "leading", func() error { return n.Ready() })
	n.noteTransferRefusal()
	if len(c.fatal) > 0 {
		t.Error(c.fatal)
	}
}

// TestTransferWatch_NoticesATermThatCannotBegin: after a transfer got stuck, a node that
// is elected again is refused its first command, and never gets to clients' commands.
func TestTransferWatch_NoticesATermThatCannotBegin(t *testing.T) {
	c := startCluster(t, 1, nil)
	n := c.nodes[0]
	stuck := fmt.Errorf("start term 7: %w", raft.ErrLeadershipTransferInProgress)
	n.noteTermRefusal(errors.New("disk"))
	n.noteTermRefusal(stuck)
	if len(c.fatal) > 0 || n.watch.since.Load() == 0 {
		t.Fatalf("after one refusal: %v", c.fatal)
	}
	n.watch.since.Store(time.Now().Add(-time.Minute).UnixNano())
	n.noteTermRefusal(stuck)
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.fatal) != 1 {
		t.Fatalf("a stuck node goes on: %v", c.fatal)
	}
	c.fatal = nil
}
