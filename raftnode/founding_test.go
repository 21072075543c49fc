package raftnode

import (
	"context"
	"errors"
	"net"
	"os"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"github.com/rollcall-io/rollcall/internal/wire/peerpb"
)

// opened opens a node without starting it, hands it to f and stops it.
func (c *testCluster) opened(i int, f func(*Node)) {
	c.t.Helper()
	n, err := Open(c.nodes[i].opts, newTestFSM())
	if err != nil {
		c.t.Fatal(err)
	}
	f(n)
	if err := n.Stop(context.Background()); err != nil {
		c.t.Fatal(err)
	}
}

// found leaves the first node as if it had died right after it wrote the configuration
// of itself and of the two others under these incarnations; "" is the one that they have.
func (c *testCluster) found(incarnations ...string) {
	c.t.Helper()
	var members []*peerpb.Member
	for i := range c.nodes {
		incarnation := ""
		if i > 0 {
			incarnation = incarnations[i-1]
		}
		if incarnation == "" {
			c.opened(i, func(n *Node) { incarnation = n.incarnation })
		}
		members = append(members, &peerpb.Member{Id: c.nodes[i].opts.NodeID, Incarnation: incarnation, Address: c.nodes[i].opts.PeerAddr})
	}
	c.opened(0, func(n *Node) {
		if err := n.bootstrap(members); err != nil {
			c.t.Fatal(err)
		}
	})
}

// TestFounding_IsForgottenWhenTheOtherDisksAreGone: the node that formed the cluster was
// killed right after the bootstrap entry, and the two other disks were wiped.
func TestFounding_IsForgottenWhenTheOtherDisksAreGone(t *testing.T) {
	c := newTestCluster(t, 3, brisk)
	c.found("gone", "gone")
	c.start(0)
	c.start(1)
	stays(t, 700*time.Millisecond, "with one node missing nothing is forgotten", func() error {
		if _, only, err := c.nodes[0].store.Founding(); !only || err != nil {
			return errors.Join(errors.New("forgotten"), err)
		}
		return nil
	})
	c.start(2)
	c.waitReady()
	eventually(t, 15*time.Second, "a write", func() error {
		_, err := c.nodes[1].Propose(context.Background(), instance(1))
		return err
	})
	if got := len(c.nodes[0].Members()); got != 3 {
		t.Errorf("%d members, want 3", got)
	}
}

// TestFounding_IsKeptForItsMajority: one of the two others is what it was, which is a
// majority with the node that formed the cluster; the third need not be there.
func TestFounding_IsKeptForItsMajority(t *testing.T) {
	c := newTestCluster(t, 3, brisk)
	c.found("", "gone")
	c.start(0)
	stays(t, 500*time.Millisecond, "alone it waits", func() error {
		if c.nodes[0].decided.Load() {
			return errors.New("it has decided")
		}
		return nil
	})
	c.start(1)
	c.waitReady()
	c.start(2) // its old self is in the configuration; it is taken in anew
	c.waitReady()
	if got := len(c.nodes[0].Members()); got != 3 {
		t.Errorf("%d members, want 3", got)
	}
}

// TestFounding_HalfWrittenIsForgotten: the crash came between Raft's two writes. Raft
// takes the first of them for state, and such a node would wait for a leader for ever.
func TestFounding_HalfWrittenIsForgotten(t *testing.T) {
	c := newTestCluster(t, 3, brisk)
	c.opened(0, func(n *Node) {
		if err := errors.Join(n.store.SetIncarnation(n.incarnation), n.store.Stable.SetUint64([]byte("CurrentTerm"), 1)); err != nil {
			t.Fatal(err)
		}
	})
	for i := range c.nodes {
		c.start(i)
	}
	c.waitReady()
}

// TestFounding_LostWithItsMakerIsFormedAnew: the two others have seen the configuration
// and run Raft, but its maker reached neither of them before its disk was lost.
func TestFounding_LostWithItsMakerIsFormedAnew(t *testing.T) {
	var c *testCluster
	c = newTestCluster(t, 3, func(i int, o *Options) {
		brisk(i, o)
		if i != 0 {
			return
		}
		dial := o.Dial
		o.Dial = func(ctx context.Context, to string) (net.Conn, error) {
			if n := c.nodes[0].Node; n != nil && n.decided.Load() {
				return nil, errors.New("cut off")
			}
			return dial(ctx, to)
		}
	})
	for i := range c.nodes {
		c.start(i)
	}
	eventually(t, 20*time.Second, "the others run Raft", func() error {
		for _, n := range c.nodes[1:] {
			if n.raft.Load() == nil || !n.blank() {
				return errors.New("not yet")
			}
		}
		return nil
	})
	c.stop(0)
	if err := os.RemoveAll(c.nodes[0].opts.DataDir); err != nil {
		t.Fatal(err)
	}
	c.nodes[0].Node, c.nodes[0].opts.Dial = nil, c.nodes[1].opts.Dial
	c.start(0)
	c.waitReady()
}

// TestFounding_OrdinaryStateIsNone: whatever took part in an election is never forgotten.
func TestFounding_OrdinaryStateIsNone(t *testing.T) {
	c := startCluster(t, 3, nil)
	for i := range c.nodes {
		c.stop(i)
	}
	for i := range c.nodes {
		c.opened(i, func(n *Node) {
			if _, only, err := n.store.Founding(); only || err != nil {
				t.Errorf("node %d: founding %v, %v", i, only, err)
			}
			if !n.decided.Load() {
				t.Errorf("node %d asks before it goes on", i)
			}
			if n.store.ForgetFounding() == nil {
				t.Errorf("node %d forgot its state", i)
			}
		})
	}
}

func TestFounding_Verdicts(t *testing.T) {
	c := newTestCluster(t, 3, brisk)
	c.opened(0, func(n *Node) {
		config := raft.Configuration{Servers: []raft.Server{{ID: n.serverID()}, {ID: "n2/2"}, {ID: "n3/3"}}}
		says := func(id, incarnation string, empty bool, members ...*peerpb.Member) *peerpb.HelloResponse {
			return &peerpb.HelloResponse{Node: &peerpb.Member{Id: id, Incarnation: incarnation}, Empty: empty, Members: members}
		}
		for _, row := range []struct {
			name     string
			answers  []*peerpb.HelloResponse
			complete bool
			want     foundingVerdict
		}{
			{"nobody answers", nil, false, foundingWaits},
			{"one wiped, one missing", []*peerpb.HelloResponse{says("n2", "x", true)}, false, foundingWaits},
			{"one of the very nodes", []*peerpb.HelloResponse{says("n2", "2", true)}, false, foundingHolds},
			{"one counts on it", []*peerpb.HelloResponse{says("n2", "2", false), says("n3", "x", true)}, true, foundingHolds},
			{"both wiped", []*peerpb.HelloResponse{says("n2", "x", true), says("n3", "x", true)}, true, foundingForgets},
			{"another cluster", []*peerpb.HelloResponse{says("n2", "2", false, &peerpb.Member{Id: "n9"})}, false, foundingForgets},
		} {
			if got := n.judgeFounding(config, row.answers, row.complete); got != row.want {
				t.Errorf("%s: %v, want %v", row.name, got, row.want)
			}
		}
	})
}
