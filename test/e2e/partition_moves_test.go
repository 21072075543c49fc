//go:build linux

package e2e

import (
	"fmt"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/rollcall-io/rollcall/test/e2e/netns"
	"github.com/rollcall-io/rollcall/test/e2e/nodes"
	"github.com/rollcall-io/rollcall/test/faults/figures"
)

// TestFollowerCutOff_ClientsThatMoveStayAndTheOthersDie: a node that goes on taking beats
// which nobody hears of keeps its clients until the others have called them dead.
func TestFollowerCutOff_ClientsThatMoveStayAndTheOthersDie(t *testing.T) {
	t.Parallel()
	s := newSplit(t, "follower's process cut off")
	cut := s.Followers()[0]
	// One service: without the healthy ones its protect threshold would show all as healthy.
	movers, bound := block("both", "10.9.0.2", 2000, 20, moving), block("both", "10.9.0.3", 2000, 20, moving)
	cut.MustRegister(append(slices.Clone(movers), bound...)...)
	moversLive := s.KeepAlive(func(int) []*nodes.Node { return s.from(s.number(cut)) }, movers...)
	boundLive := s.KeepAlive(func(int) []*nodes.Node { return []*nodes.Node{cut} }, bound...)
	term := s.highestTerm()

	s.net.Isolate(s.number(cut))
	since := time.Now()
	s.row.Immortals = 0
	for _, n := range s.Others(cut) {
		down := s.Within(moving.Timeout+3*time.Second, "unhealthy instances of clients that cannot move, on "+n.ID, func() bool {
			listed, healthy := countOf(n.Keys("both"), bound)
			return listed > 0 && healthy == 0
		})
		t.Logf("unhealthy on %s after %s more", n.ID, down)
	}
	for _, n := range s.Others(cut) {
		s.Within(max(0, moving.Delete+3*time.Second-time.Since(since)), "end of clients that cannot move, on "+n.ID, func() bool {
			keys := n.Keys("both")
			listed, _ := countOf(keys, bound)
			return keys != nil && listed == 0
		})
		t.Logf("gone on %s %s after the cut", n.ID, time.Since(since))
	}
	if gone := time.Since(since); gone < moving.Delete-moving.Interval {
		t.Errorf("gone %s after the cut, want %s at least", gone, moving.Delete-moving.Interval)
	}
	if during := s.highestTerm(); during != term {
		t.Errorf("term %v while a follower is cut off, it was %v", during, term)
	}
	boundLive.Stop() // they could not move: what they had acknowledged at first proved nothing
	s.net.Heal()
	s.follows(cut)
	again := s.KeepAlive(func(int) []*nodes.Node { return []*nodes.Node{cut} }, bound...)
	pass(moving.Delete + time.Second)
	s.judgeLives(again)
	s.judgeLives(moversLive)
	s.row.Rounds = 1
	s.judge(1)
}

// countOf counts those of some instances that a list shows.
func countOf(keys map[string]bool, of []nodes.Instance) (listed, healthy int) {
	for _, in := range of {
		up, found := keys[in.Key()]
		if found {
			listed++
		}
		if up {
			healthy++
		}
	}
	return listed, healthy
}

// TestAddressesMoved_UnderRunningNodes: nodes keep their names and get new addresses while
// they run, as containers do, one after the other; then one comes back under another name
// and address at once.
func TestAddressesMoved_UnderRunningNodes(t *testing.T) {
	t.Parallel()
	row := figures.Track(t, "addresses and names of running processes changed")
	w := netns.New(t, 3)
	c := nodes.NewAt(t, w, binary, 3, "--http-addr", "0.0.0.0:8000", "--peer-addr", "0.0.0.0:7000")
	for _, n := range c.Nodes() {
		n.Start()
	}
	c.WaitReady(c.Nodes()...)
	writers := c.Write(4, 20*time.Millisecond, c.Nodes)
	for i := range either(3, 9) {
		moveUnder(t, c, w, i%3)
		row.Rounds++
	}
	renamed := c.Nodes()[0]
	renamed.Signal(syscall.SIGTERM)
	if code := renamed.Exit(15 * time.Second); code != 0 {
		t.Errorf("%s exits with %d on SIGTERM", renamed.ID, code)
	}
	w.Move(0)
	w.Rename(0, "elsewhere")
	renamed.HTTP, renamed.Peer = w.Addresses(0)
	renamed.Start()
	c.WaitReady(renamed)
	row.Rounds++
	row.Outage(writers.LongestGap())
	total := checkAcked(t, c, writers.Stop())
	row.Wrote(writers.Sent(), total, 0)
	t.Logf("%d acknowledged writes listed on all nodes, no write for %s at most", total, writers.LongestGap())
}

// moveUnder gives a running node a new address and waits until it takes part again: it
// knows the leader, and a write through it is listed everywhere.
func moveUnder(t *testing.T, c *nodes.Cluster, w *netns.Network, i int) {
	t.Helper()
	n := c.Nodes()[i]
	led := c.Leader() == n
	w.Move(i)
	n.HTTP, _ = w.Addresses(i)
	moved := time.Now()
	in := nodes.Instance{Service: "moved", IP: "10.8.0.1", Port: int(moved.UnixMilli() % 60000)}.Lasting()
	n.MustRegister(in)
	for _, m := range c.Nodes() {
		c.Until(fmt.Sprintf("what was registered through %s, on %s", n.ID, m.ID), func() bool {
			_, listed := m.Keys("moved")[in.Key()]
			return listed
		})
	}
	t.Logf("%s, leader before: %v, takes writes %s after it got another address", n.ID, led, time.Since(moved))
}
