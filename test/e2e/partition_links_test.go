//go:build linux

package e2e

import (
	"fmt"
	"testing"
	"time"

	"github.com/rollcall-io/rollcall/test/e2e/netns"
	"github.com/rollcall-io/rollcall/test/e2e/nodes"
)

// direction is one way between two nodes.
type direction struct{ from, to *nodes.Node }

// directions are all ways between nodes, those between the leader and one follower first.
func (s *split) directions() []direction {
	leader := s.Leader()
	rest := s.Others(leader)
	ways := []direction{{leader, rest[0]}, {rest[0], leader}}
	for _, from := range s.Nodes() {
		for _, to := range s.Nodes() {
			if way := (direction{from, to}); from != to && way != ways[0] && way != ways[1] {
				ways = append(ways, way)
			}
		}
	}
	return ways
}

// TestOneWayCut_TheRegistryGoesOnAndElectionsEnd: a node that does not hear the leader, but
// is heard, must not make the others vote again and again.
func TestOneWayCut_TheRegistryGoesOnAndElectionsEnd(t *testing.T) {
	t.Parallel()
	s := newSplit(t, "one way between two processes cut")
	for _, way := range s.directions()[:either(2, 6)] {
		s.throughCut(fmt.Sprintf("%s to %s", way.from.ID, way.to.ID), way.from, way.to, func(from, to int) { s.net.Cut(from, to) })
	}
	pair := s.directions()[0] // the leader may be another by now
	s.throughCut("both ways", pair.from, pair.to, s.net.Part)
	s.judge(float64(3 * s.row.Rounds))
}

// throughCut makes a cut between two nodes and wants writes to go on through the third.
func (s *split) throughCut(name string, from, to *nodes.Node, cut func(from, to int)) {
	s.t.Helper()
	var third []*nodes.Node
	for _, n := range s.Others(from) {
		if n != to {
			third = append(third, n)
		}
	}
	term := s.highestTerm()
	writers := s.WriteTo(fmt.Sprintf("round-%d", s.row.Rounds), 4, 20*time.Millisecond, func() []*nodes.Node { return third })
	pass(200 * time.Millisecond)
	cut(s.number(from), s.number(to))
	pass(either(3*time.Second, 10*time.Second))
	s.net.Heal()
	s.WaitReady(s.Nodes()...)
	gap := writers.LongestGap()
	s.row.Rounds++
	s.row.Outage(gap)
	s.row.Wrote(writers.Sent(), checkAcked(s.t, s.Cluster, writers.Stop()), 0)
	s.t.Logf("%s: no write for %s at most, %v new terms", name, gap, s.highestTerm()-term)
	if gap > 3*time.Second {
		s.t.Errorf("%s: no write for %s, want 3 s at most", name, gap)
	}
}

// TestSlowLossyLinks_CostTimeAndNothingElse: rtt of 100 ms on average, and what is lost is sent again.
func TestSlowLossyLinks_CostTimeAndNothingElse(t *testing.T) {
	t.Parallel()
	s := newSplit(t, "slow and lossy links between processes")
	s.net.Slow(netns.Shape{Delay: 50 * time.Millisecond, Jitter: 30 * time.Millisecond, Loss: 0.02})
	slowed := time.Now()
	s.during(either(20*time.Second, 60*time.Second))
	if s.writers.SentAfter(slowed).IsZero() {
		t.Error("no write while links are slow")
	}
	s.row.Rounds = 1
	s.row.Outage(s.writers.LongestGap())
	s.net.Straighten()
	s.judge(10)
}

// during lets time go by in which writers write.
func (s *split) during(d time.Duration) {
	sent := s.writers.Sent()
	pass(d)
	s.t.Logf("%d writes sent in %s, no acknowledgement for %s at most", s.writers.Sent()-sent, d, s.writers.LongestGap())
}

// TestFlappingPartition_LosesNothing: the same node is cut off and back every two seconds,
// and in each round whoever leads.
func TestFlappingPartition_LosesNothing(t *testing.T) {
	t.Parallel()
	s := newSplit(t, "partition of processes that flaps")
	for end := time.Now().Add(either(20*time.Second, 60*time.Second)); time.Now().Before(end); {
		s.net.Isolate(s.number(s.Leader()))
		pass(2 * time.Second)
		s.net.Heal()
		pass(2 * time.Second)
		s.row.Rounds++
	}
	s.row.Outage(s.writers.LongestGap())
	s.judge(float64(4 * s.row.Rounds))
}
