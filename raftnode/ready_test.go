package raftnode

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rollcall-io/rollcall/internal/wire/peerpb"
	"github.com/rollcall-io/rollcall/registry"
)

func TestProgress_OnlyALeadersWordMakesItCurrent(t *testing.T) {
	var p progress
	first, second := time.Unix(100, 0), time.Unix(200, 0)
	p.word(&peerpb.ProgressResponse{Leads: true, Applied: 5}, first)
	p.look(4, true)
	if !p.current.IsZero() {
		t.Errorf("current at %v with an entry missing", p.current)
	}
	p.look(5, true)
	p.word(&peerpb.ProgressResponse{Applied: 9}, second)
	p.look(5, true)
	if !p.current.Equal(first) {
		t.Errorf("current at %v, want %v, when the leader last spoke", p.current, first)
	}
}

// A node that is cut off tells how old its state is, more and more.
func TestLag_GrowsWithoutALeader(t *testing.T) {
	c := startCluster(t, 3, nil)
	if _, err := c.nodes[0].Propose(t.Context(), instance(0)); err != nil {
		t.Fatal(err)
	}
	last := c.follower()
	for i := range c.nodes {
		if i != last {
			c.stop(i)
		}
	}
	began, n := time.Now(), c.nodes[last]
	eventually(t, 20*time.Second, "a lag of two seconds", func() error {
		if lag := n.LagMs(); lag < 2000 {
			return fmt.Errorf("%d ms, %v after the others stopped", lag, time.Since(began))
		}
		return nil
	})
	if err := n.Ready(); err != nil {
		t.Errorf("a node that was ready serves reads: %v", err)
	}
}

func TestReady_SaysWhatIsMissing(t *testing.T) {
	c := newTestCluster(t, 3, brisk)
	n := c.start(0)
	says := func(what string) func() error {
		return func() error {
			if err := n.Ready(); !errors.Is(err, registry.ErrNotReady) || !strings.Contains(err.Error(), what) {
				return fmt.Errorf("%v, want %q in it", err, what)
			}
			return nil
		}
	}
	eventually(t, 15*time.Second, "nobody else there", says("1 of 3 nodes reached"))
	c.start(1)
	eventually(t, 15*time.Second, "two there", says("2 of 3 nodes reached"))
	c.start(2)
	c.waitReady()
	for i := range c.nodes {
		c.stop(i)
	}
	n = c.start(0)
	eventually(t, 15*time.Second, "no majority", says("no leader"))
}
