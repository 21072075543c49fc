package e2e

import (
	"strings"
	"testing"
	"time"

	"github.com/rollcall-io/rollcall/test/e2e/nodes"
	"github.com/rollcall-io/rollcall/test/faults/figures"
)

// ends waits until a running node ends over its damaged directory.
func ends(t *testing.T, c *nodes.Cluster, n *nodes.Node, before int) {
	t.Helper()
	c.Until(n.ID+" ended", func() bool { return !n.Running() })
	if code := n.Exit(time.Second); code != exitDamage {
		t.Errorf("%s ended with %d, want %d", n.ID, code, exitDamage)
	}
	wantMessage(t, n, n.Log()[before:])
}

// rejoins does what the message says, and looks whether all nodes list the same.
func rejoins(t *testing.T, c *nodes.Cluster, n *nodes.Node, want map[string]bool) {
	t.Helper()
	n.Wipe()
	n.Start()
	c.WaitReady(c.Nodes()...)
	for _, n := range c.Nodes() {
		c.Until("everything on "+n.ID, func() bool { return sameKeys(n.Keys("svc"), want) })
	}
	wantSameState(t, c)
}

// TestBitFlippedInALogEntry_TheNodeRefusesToStart flips a bit in what a committed entry
// says. The entry would be applied again at the start: the node names it and ends instead.
func TestBitFlippedInALogEntry_TheNodeRefusesToStart(t *testing.T) {
	row := figures.Track(t, "one bit flipped in a log entry")
	c, n, want := withSnapshot(t)
	n.Kill()
	flipBehind(t, n, marked, 0)
	before := len(n.Log())
	n.Start()
	ends(t, c, n, before)
	if said := n.Log()[before:]; !strings.Contains(said, "log entry") {
		t.Errorf("it does not name the entry: %s", said)
	}
	rejoins(t, c, n, want)
	row.Rounds = 1
	row.Wrote(len(want), len(want), 0)
}

// TestBitFlippedInTheLeadersLog_ItEndsAndSendsNothingWrong: a leader reads its log for a
// follower that was away. It ends, and another, whose log is sound, brings the follower up.
func TestBitFlippedInTheLeadersLog_ItEndsAndSendsNothingWrong(t *testing.T) {
	row := figures.Track(t, "one bit flipped in a log entry")
	c := nodes.Start(t, binary, 3)
	leader, away := c.Leader(), c.Followers()[0]
	away.Kill()
	// More than the leader keeps in memory.
	all := append(block("svc", marked, 1000, 1, nodes.Instance{}.Lasting()), block("svc", "10.0.0.1", 1000, 600, nodes.Instance{}.Lasting())...)
	leader.MustRegister(all...)
	want := map[string]bool{}
	for _, in := range all {
		want[in.Key()] = true
	}
	flipBehind(t, leader, marked, 0)
	before := len(leader.Log())
	away.Start()
	ends(t, c, leader, before)
	c.WaitReady(c.Others(leader)...)
	if got := away.Keys("svc"); !sameKeys(got, want) {
		t.Errorf("%s lists %d of %d", away.ID, len(got), len(want))
	}
	rejoins(t, c, leader, want)
	row.Rounds = 1
	row.Wrote(len(all), len(all), 0)
}

// TestLogCutOffUnderARunningNode_ItEndsWithAMessage: memory that is mapped and has no file
// behind it any more is a fault of the machine, which ended the process with a stack.
func TestLogCutOffUnderARunningNode_ItEndsWithAMessage(t *testing.T) {
	row := figures.Track(t, "one bit flipped on disk")
	c, n, want := withSnapshot(t)
	before := len(n.Log())
	cutOff(t, n, 2*4096)
	late := nodes.Instance{Service: "svc", IP: "10.0.0.9", Port: 9}.Lasting()
	c.Others(n)[0].MustRegister(late)
	want[late.Key()] = true
	ends(t, c, n, before)
	rejoins(t, c, n, want)
	row.Rounds = 1
	row.Wrote(len(want), len(want), 0)
}
