//go:build linux

package e2e

import (
	"fmt"
	"slices"
	"sync/atomic"
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
	s := newSplit(t, "follower's process cut off", unhurried...)
	cut := s.Followers()[0]
	// One service: without the healthy ones its protect threshold would show all as healthy.
	movers, bound := block("both", "10.9.0.2", 2000, 20, moving), block("both", "10.9.0.3", 2000, 20, moving)
	cut.MustRegister(append(slices.Clone(movers), bound...)...)
	moversLive := s.KeepAlive(func(int) []*nodes.Node { return s.from(s.number(cut)) }, movers...)
	boundLive := s.KeepAlive(func(int) []*nodes.Node { return []*nodes.Node{cut} }, bound...)
	term := s.highestTerm()

	rest := s.Others(cut)
	steady := s.WriteTo("steady", 4, 20*time.Millisecond, func() []*nodes.Node { return rest })
	s.net.Isolate(s.number(cut))
	s.die(bound, rest, time.Now())
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
	gap := steady.LongestGap()
	s.row.Rounds, s.row.Immortals = 1, 0
	s.row.Outage(gap)
	s.row.Wrote(steady.Sent(), checkAcked(t, s.Cluster, steady.Stop()), 0)
	if gap > 2*time.Second { // less than an election takes
		t.Errorf("no write for %s while a follower is cut off, want 2 s at most", gap)
	}
	s.judge(1)
}

// die wants instances of service both that nobody beats from a time on to be unhealthy and
// then gone when their timeouts say so, as some nodes show them.
func (s *split) die(silent []nodes.Instance, shown []*nodes.Node, since time.Time) {
	s.t.Helper()
	const late = 3 * time.Second // a scan, a commit, and what a busy machine takes
	for _, n := range shown {
		s.Within(max(0, moving.Timeout+late-time.Since(since)), "unhealthy instances of clients that cannot move, on "+n.ID, func() bool {
			keys := n.Keys("both")
			_, healthy := countOf(keys, silent)
			return keys != nil && healthy == 0
		})
		s.t.Logf("unhealthy on %s %s after the cut", n.ID, time.Since(since))
	}
	for _, n := range shown {
		s.Within(max(0, moving.Delete+late-time.Since(since)), "end of clients that cannot move, on "+n.ID, func() bool {
			keys := n.Keys("both")
			listed, _ := countOf(keys, silent)
			return keys != nil && listed == 0
		})
		s.t.Logf("gone on %s %s after the cut", n.ID, time.Since(since))
	}
	if gone := time.Since(since); gone < moving.Delete-moving.Interval {
		s.t.Errorf("gone %s after the cut, want %s at least", gone, moving.Delete-moving.Interval)
	}
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

// relocation is a cluster whose nodes get new addresses one after the other, and writers
// that leave out the one whose turn it is: their connections to it are dead for a while.
type relocation struct {
	*nodes.Cluster
	t    *testing.T
	net  *netns.Network
	away atomic.Pointer[nodes.Node]
}

// TestAddressesMoved_UnderRunningNodes: nodes keep their names and get new addresses while
// they run, as containers do; then one comes back under another name and address at once.
func TestAddressesMoved_UnderRunningNodes(t *testing.T) {
	t.Parallel()
	row := figures.Track(t, "addresses and names of running processes changed")
	r := &relocation{t: t, net: netns.New(t, 3)}
	r.Cluster = nodes.NewAt(t, r.net, binary, 3, "--http-addr", "0.0.0.0:8000", "--peer-addr", "0.0.0.0:7000")
	for _, n := range r.Nodes() {
		n.Start()
	}
	r.WaitReady(r.Nodes()...)
	r.away.Store(r.Leader()) // the worst comes first
	writers := r.Write(4, 20*time.Millisecond, func() []*nodes.Node { return r.Others(r.away.Load()) })
	first := slices.Index(r.Nodes(), r.away.Load())
	for i := range either(2, 9) {
		r.move((first + i) % 3)
		row.Rounds++
	}
	r.rename(0)
	row.Rounds++
	gap := writers.LongestGap()
	row.Outage(gap)
	total := checkAcked(t, r.Cluster, writers.Stop())
	row.Wrote(writers.Sent(), total, 0)
	t.Logf("%d acknowledged writes listed on all nodes, no write for %s at most", total, gap)
	// A leader that moves may lead on; the others' connections to it are then given up
	// after five seconds, and its old address may be remembered for five more.
	if gap > 10*time.Second {
		t.Errorf("no write for %s through nodes that stayed where they were, want 10 s at most", gap)
	}
}

// leave keeps the writers away from a node and waits for what is under way to it.
func (r *relocation) leave(n *nodes.Node) {
	r.away.Store(n)
	pass(300 * time.Millisecond)
	r.Redial()
}

// move gives a running node a new address and waits until it takes part again: what is
// registered through it is listed everywhere.
func (r *relocation) move(i int) {
	r.t.Helper()
	n, leader := r.Nodes()[i], r.Leader()
	r.leave(n)
	r.net.Move(i)
	moved := time.Now()
	in := nodes.Instance{Service: "moved", IP: "10.8.0.1", Port: int(moved.UnixMilli() % 60000)}.Lasting()
	n.MustRegister(in)
	for _, m := range r.Nodes() {
		r.Until(fmt.Sprintf("what was registered through %s, on %s", n.ID, m.ID), func() bool {
			_, listed := m.Keys("moved")[in.Key()]
			return listed
		})
	}
	r.t.Logf("%s, leader before: %v, takes part %s after it got another address", n.ID, n == leader, time.Since(moved))
}

// rename stops a node and starts it under another name, at another address.
func (r *relocation) rename(i int) {
	r.t.Helper()
	n := r.Nodes()[i]
	r.leave(n)
	n.Signal(syscall.SIGTERM)
	if code := n.Exit(15 * time.Second); code != 0 {
		r.t.Errorf("%s exits with %d on SIGTERM", n.ID, code)
	}
	r.net.Move(i)
	r.net.Rename(i, "elsewhere")
	_, n.Peer = r.net.Addresses(i)
	started := time.Now()
	n.Start()
	r.WaitReady(n)
	r.t.Logf("%s is ready %s after it was started under another name", n.ID, time.Since(started))
}
