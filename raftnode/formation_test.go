package raftnode

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rollcall-io/rollcall/internal/loopback"
	"github.com/rollcall-io/rollcall/raftnode/identity"
	"github.com/rollcall-io/rollcall/raftnode/store"
)

// stays polls that a condition holds for a while.
func stays(t *testing.T, within time.Duration, what string, cond func() error) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(within); time.Now().Before(deadline); <-tick.C {
		if err := cond(); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
}

func TestFormation_WaitsForAllExpectedNodes(t *testing.T) {
	c := newTestCluster(t, 3, brisk)
	c.start(0)
	c.start(1)
	stays(t, 1200*time.Millisecond, "two of three", func() error {
		for _, n := range c.up() {
			if n.decided.Load() {
				return fmt.Errorf("%s has decided", n.opts.NodeID)
			}
		}
		return nil
	})
	c.start(2)
	c.waitReady()
	id := c.nodes[0].fsm.ClusterID()
	for _, n := range c.nodes {
		eventually(t, 15*time.Second, "cluster id kept", func() error {
			kept, _, err := identity.Load(n.opts.DataDir)
			if err == nil && (kept.Cluster == "" || kept.Cluster != id || !kept.Started) {
				err = fmt.Errorf("kept %+v, cluster is %q", kept, id)
			}
			return err
		})
	}
}

func TestFormation_MoreNodesThanExpectedFormNone(t *testing.T) {
	c := newTestCluster(t, 3, func(_ int, o *Options) { o.BootstrapExpect = 2 })
	for i := range c.nodes {
		c.start(i)
	}
	stays(t, time.Second, "three nodes where two are expected", func() error {
		for _, n := range c.up() {
			if n.decided.Load() {
				return fmt.Errorf("%s has decided", n.opts.NodeID)
			}
		}
		return nil
	})
}

func TestFormation_FlagsNeverFormASecondCluster(t *testing.T) {
	c := startCluster(t, 3, nil)
	// A node alone with its disk, told to form a cluster of one: it goes on as before.
	f := c.follower()
	c.stop(f)
	c.nodes[f].opts.BootstrapExpect, c.nodes[f].opts.Join = 1, nil
	c.start(f)
	c.waitReady()
	if got := len(c.nodes[f].Members()); got != 3 {
		t.Fatalf("%d members, want 3", got)
	}
}

func TestFormation_WipedNodeReturnsUnderItsName(t *testing.T) {
	c := startCluster(t, 3, nil)
	for i := range 20 {
		if _, err := c.nodes[i%3].Propose(context.Background(), instance(i)); err != nil {
			t.Fatal(err)
		}
	}
	f := c.follower()
	before := c.nodes[f].incarnation
	c.stop(f)
	if err := os.RemoveAll(c.nodes[f].opts.DataDir); err != nil {
		t.Fatal(err)
	}
	c.cutOff(f, true)
	n := c.start(f)
	if n.incarnation == before {
		t.Fatal("a wiped node keeps its incarnation")
	}
	if n.Ready() == nil {
		t.Fatal("a wiped node is ready before it has met another")
	}
	c.cutOff(f, false)
	c.waitReady()
	if !n.Status().Voter || n.fsm.count() != 20 {
		t.Fatalf("ready with %d of 20 instances, status %+v", n.fsm.count(), n.Status())
	}
	if got := len(n.Members()); got != 3 {
		t.Fatalf("%d members, want 3: %+v", got, n.Members())
	}
	// It counts: another one may go now.
	c.stop((f + 1) % 3)
	if _, err := n.Propose(context.Background(), instance(20)); err != nil {
		t.Fatalf("write with the wiped node in the majority: %v", err)
	}
}

func TestFormation_LostRaftStateIsANewIncarnation(t *testing.T) {
	c := startCluster(t, 3, nil)
	f := c.follower()
	before := c.nodes[f].incarnation
	eventually(t, 15*time.Second, "cluster id kept", func() error {
		if c.nodes[f].clusterID() == "" {
			return errors.New("not yet")
		}
		return nil
	})
	c.stop(f)
	for _, name := range []string{"raft.db", "snapshots"} {
		if err := os.RemoveAll(filepath.Join(c.nodes[f].opts.DataDir, name)); err != nil {
			t.Fatal(err)
		}
	}
	n := c.start(f)
	if n.incarnation == before {
		t.Fatal("the votes are lost, but the incarnation stays")
	}
	c.waitReady()
}

func TestFormation_ChangedAddressHeals(t *testing.T) {
	c := startCluster(t, 3, nil)
	f := c.follower()
	c.stop(f)
	moved := loopback.FreeAddress(t)
	c.nodes[f].opts.PeerAddr = moved
	c.start(f)
	c.waitReady()
	for _, n := range c.nodes {
		eventually(t, 15*time.Second, "new address known", func() error {
			for _, m := range n.Members() {
				if m.ID == c.nodes[f].opts.NodeID && m.PeerAddress == moved {
					return nil
				}
			}
			return fmt.Errorf("members %+v", n.Members())
		})
	}
}

func TestFormation_ForeignNodeIsRefused(t *testing.T) {
	a := startCluster(t, 1, func(_ int, o *Options) { o.Secret = []byte("a-secret-of-the-test") })
	b := startCluster(t, 1, func(_ int, o *Options) { o.Secret = []byte("a-secret-of-the-test") })
	for _, n := range []*testNode{a.nodes[0], b.nodes[0]} {
		eventually(t, 15*time.Second, "cluster id kept", func() error {
			if n.clusterID() == "" {
				return errors.New("not yet")
			}
			return nil
		})
	}
	b.stop(0)
	b.nodes[0].opts.Join = []string{a.nodes[0].Address()}
	n := b.start(0)
	b.waitReady()
	err := n.reach(context.Background(), "", "x/y")
	if err == nil {
		t.Fatal("reached nobody")
	}
	_, err = n.mux.Dial(context.Background(), 2, a.nodes[0].Address(), n.identity())
	if err == nil || !strings.Contains(err.Error(), "cluster") {
		t.Fatalf("dialling a foreign cluster: %v", err)
	}
	if got := len(a.nodes[0].Members()); got != 1 {
		t.Fatalf("foreign node was taken in: %d members", got)
	}
}

func TestOpen_RefusesWhatDoesNotFit(t *testing.T) {
	c := startCluster(t, 1, nil)
	n := c.nodes[0]
	if _, err := Open(n.opts, newTestFSM()); !errors.Is(err, store.ErrLocked) || !strings.Contains(err.Error(), n.opts.DataDir) {
		t.Errorf("directory in use: %v", err)
	}
	c.stop(0)
	other := n.opts
	other.NodeID = "another"
	if _, err := Open(other, newTestFSM()); err == nil || !strings.Contains(err.Error(), "belongs to node n1") {
		t.Errorf("another node's directory: %v", err)
	}
	bad := DefaultOptions()
	bad.NodeID, bad.BootstrapExpect, bad.ElectionTimeout, bad.PeerAddr = "a b", 3, time.Millisecond, ":7848"
	_, err := Open(bad, newTestFSM())
	for _, want := range []string{`"a b"`, "secret", "1ms", "must name a host"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("options: error lacks %s: %v", want, err)
		}
	}
}
