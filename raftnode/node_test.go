package raftnode

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/rollcall-io/rollcall/registry"
)

func TestNode_OneNodeWritesAndRestarts(t *testing.T) {
	c := startCluster(t, 1, nil)
	n := c.nodes[0]
	if _, err := n.Propose(context.Background(), instance(1)); err != nil {
		t.Fatal(err)
	}
	c.stop(0)
	c.start(0)
	c.waitReady()
	if got := c.nodes[0].fsm.times(instance(1)); got != 1 {
		t.Fatalf("registered %d times after a restart, want 1", got)
	}
}

func TestNode_FollowerWriteIsVisibleThere(t *testing.T) {
	c := startCluster(t, 3, nil)
	f := c.nodes[c.follower()]
	for i := range 20 {
		result, err := f.Propose(context.Background(), instance(i))
		if err != nil {
			t.Fatal(err)
		}
		if !result.Changed || result.Index == 0 || f.fsm.times(instance(i)) != 1 {
			t.Fatalf("write %d: result %+v, there %d times", i, result, f.fsm.times(instance(i)))
		}
	}
}

func TestNode_RefusalOfApplyIsAnError(t *testing.T) {
	c := startCluster(t, 3, nil)
	for _, n := range c.nodes {
		result, err := n.Propose(context.Background(), registry.ServiceDelete{Key: registry.NewServiceKey("public", "", "svc")})
		if !errors.Is(err, registry.ErrServiceNotFound) || result.Err == nil || result.Index == 0 {
			t.Fatalf("%s: result %+v, error %v", n.opts.NodeID, result, err)
		}
	}
}

func TestNode_LeaderLossKeepsAcknowledgedWrites(t *testing.T) {
	c := startCluster(t, 3, func(_ int, o *Options) { o.WriteTimeout = 15 * time.Second })
	l := c.leader()
	if _, err := c.nodes[l].Propose(context.Background(), instance(0)); err != nil {
		t.Fatal(err)
	}
	c.stop(l)
	began := time.Now()
	f := c.up()[0]
	if _, err := f.Propose(context.Background(), instance(1)); err != nil {
		t.Fatalf("write after the leader left, %v later: %v", time.Since(began), err)
	}
	for _, n := range c.up() {
		eventually(t, 10*time.Second, "both writes", func() error {
			if n.fsm.count() != 2 {
				return errors.New("missing")
			}
			return nil
		})
	}
	c.start(l)
	c.waitReady()
	if got := c.nodes[l].fsm.count(); got != 2 {
		t.Fatalf("restarted node holds %d, want 2", got)
	}
}

func TestNode_NoQuorumHoldsThenRefuses(t *testing.T) {
	c := startCluster(t, 3, func(i int, o *Options) {
		brisk(i, o)
		o.WriteTimeout = 700 * time.Millisecond
	})
	l := c.leader()
	f := (l + 1) % 3
	c.stop(l)
	c.stop((l + 2) % 3)
	n := c.nodes[f]
	var took time.Duration
	eventually(t, 20*time.Second, "refused for want of a leader", func() error {
		began := time.Now()
		_, err := n.Propose(context.Background(), instance(0))
		took = time.Since(began)
		if !errors.Is(err, registry.ErrNoLeader) { // it may have been handed the leadership, for a moment
			return fmt.Errorf("answered %v", err)
		}
		return nil
	})
	if took < 600*time.Millisecond || took >= DefaultOptions().WriteTimeout {
		t.Fatalf("refused after %v, want about 700ms", took)
	}
	if err := n.Ready(); err != nil {
		t.Fatalf("a node that was ready is not without a leader: %v", err)
	}
	c.start(l)
	c.waitReady()
	eventually(t, 15*time.Second, "a write with a majority", func() error {
		_, err := n.Propose(context.Background(), instance(0))
		return err
	})
}
