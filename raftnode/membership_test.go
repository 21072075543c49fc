package raftnode

import (
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"github.com/rollcall-io/rollcall/internal/loopback"
)

// TestMembership_LeaderDiesWhileAWipedNodeReturns lets the leader go in the middle of the
// changes that take a wiped node in again. When it is back everything comes right.
func TestMembership_LeaderDiesWhileAWipedNodeReturns(t *testing.T) {
	for _, at := range []string{"removed", "without a vote"} {
		t.Run(at, func(t *testing.T) {
			c := startCluster(t, 3, nil)
			c.fill(0, 0, 50, 0)
			l, f := c.leader(), c.follower()
			old := c.nodes[f].serverID()
			c.stop(f)
			if err := os.RemoveAll(c.nodes[f].opts.DataDir); err != nil {
				t.Fatal(err)
			}
			n := c.start(f)
			eventually(t, 20*time.Second, at, func() error {
				servers := c.nodes[l].servers()
				_, stays := find(servers, old)
				_, back := find(servers, n.serverID())
				if stays || at == "without a vote" && !back {
					return errors.New("not yet")
				}
				return nil
			})
			c.stop(l)
			c.start(l)
			c.waitReady()
			var want string
			for _, n := range c.nodes {
				eventually(t, 20*time.Second, "one configuration of three voters", func() error {
					servers := n.servers()
					for _, s := range servers {
						if s.Suffrage != raft.Voter {
							return fmt.Errorf("%v", servers)
						}
					}
					if got := fmt.Sprint(servers); want == "" && len(servers) == 3 {
						want = got
					} else if got != want {
						return fmt.Errorf("%s: %s, elsewhere %s", n.opts.NodeID, got, want)
					}
					return nil
				})
				if n.fsm.count() != 50 {
					t.Errorf("%s holds %d of 50", n.opts.NodeID, n.fsm.count())
				}
			}
		})
	}
}

// The addresses on disk were those of before, and no leader was found (hashicorp/consul
// #457, rqlite/rqlite #1293).
func TestMembership_AllAddressesChangedAtOnce(t *testing.T) {
	c := startCluster(t, 3, nil)
	if _, err := c.nodes[0].Propose(t.Context(), instance(0)); err != nil {
		t.Fatal(err)
	}
	var join []string
	for i := range c.nodes {
		c.stop(i)
		join = append(join, loopback.FreeAddress(t))
	}
	for i, n := range c.nodes {
		n.opts.PeerAddr, n.opts.Join = join[i], join
		c.start(i)
	}
	c.waitReady()
	for i, n := range c.nodes {
		if _, err := n.Propose(t.Context(), instance(i+1)); err != nil {
			t.Errorf("write at %s: %v", n.opts.NodeID, err)
		}
		eventually(t, 20*time.Second, "the new addresses at "+n.opts.NodeID, func() error {
			if moved := n.movedTo(); len(moved) > 0 {
				return fmt.Errorf("%v unknown, the configuration is %v", moved, n.servers())
			}
			return nil
		})
		if n.fsm.times(instance(0)) != 1 {
			t.Errorf("%s has lost what was written before", n.opts.NodeID)
		}
	}
}
