//go:build linux

package e2e

import (
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/rollcall-io/rollcall/test/e2e/netns"
	"github.com/rollcall-io/rollcall/test/e2e/nodes"
	"github.com/rollcall-io/rollcall/test/faults/figures"
)

// moving are timeouts of clients that may have to move: a node that is cut off takes beats
// for three seconds that the others never hear of.
var moving = nodes.Instance{Interval: 500 * time.Millisecond, Timeout: 6 * time.Second, Delete: 7 * time.Second}

// split is a cluster of three whose network can be taken apart, with clients that beat and
// clients that write through all nodes.
type split struct {
	*nodes.Cluster
	t       *testing.T
	net     *netns.Network
	row     *figures.Row
	lives   *nodes.Lives
	writers *nodes.Writers
	term    float64
}

func newSplit(t *testing.T, fault string, args ...string) *split {
	t.Helper()
	s := &split{t: t, row: figures.Track(t, fault), net: netns.New(t, 3)}
	s.Cluster = nodes.NewAt(t, s.net, binary, 3, args...)
	for _, n := range s.Nodes() {
		n.Start()
	}
	s.WaitReady(s.Nodes()...)
	alive := block("alive", "10.9.0.1", 2000, 20, moving)
	s.Nodes()[0].MustRegister(alive...)
	s.lives = s.KeepAlive(func(i int) []*nodes.Node { return s.from(i) }, alive...)
	s.writers = s.Write(8, 20*time.Millisecond, s.Nodes)
	s.term = s.highestTerm()
	return s
}

// from are all nodes, beginning with one.
func (s *split) from(first int) []*nodes.Node {
	all := s.Nodes()
	return slices.Concat(all[first%len(all):], all[:first%len(all)])
}

// number is a node's in the network.
func (s *split) number(n *nodes.Node) int { return slices.Index(s.Nodes(), n) }

// highestTerm is the newest term that a node knows.
func (s *split) highestTerm() float64 {
	s.t.Helper()
	highest := 0.0
	for _, n := range s.Nodes() {
		term, err := n.Metric("rollcall_raft_term")
		if err != nil {
			s.t.Fatal(err)
		}
		highest = max(highest, term)
	}
	return highest
}

// judge ends the clients of a network that is whole again, and looks for what was lost or
// taken for dead. No more elections than the given number may have begun.
func (s *split) judge(elections float64) {
	s.t.Helper()
	s.WaitReady(s.Nodes()...)
	total := checkAcked(s.t, s.Cluster, s.writers.Stop())
	s.row.Wrote(s.writers.Sent(), total, 0)
	s.judgeLives(s.lives)
	terms := s.highestTerm() - s.term
	s.t.Logf("%d acknowledged writes listed on all nodes, %v new terms", total, terms)
	if terms > elections {
		s.t.Errorf("%v new terms, want %v at most", terms, elections)
	}
}

func (s *split) judgeLives(l *nodes.Lives) {
	s.t.Helper()
	sights, gap := l.Stop()
	s.row.FalseEvictions = max(s.row.FalseEvictions, 0) + len(sights)
	s.t.Logf("no instance was without an acknowledged beat for longer than %s", gap)
	if len(sights) > 0 {
		s.t.Errorf("%d false sights, the first: %s", len(sights), sights[0])
	}
	if gap >= moving.Timeout {
		s.t.Errorf("no node took the beats of an instance for %s", gap)
	}
}

// deposed is what a leader without a majority answered.
type deposed struct {
	*split
	node *nodes.Node
	cut  time.Time
	ends time.Time
	wg   sync.WaitGroup
}

// TestLeaderCutOff_TheOthersGoOnAndItRefusesAndEvictsNobody: a leader in a minority went on
// as one, or its side of a partition called everybody else dead.
func TestLeaderCutOff_TheOthersGoOnAndItRefusesAndEvictsNobody(t *testing.T) {
	s := newSplit(t, "leader's process cut off")
	for range either(1, 3) {
		old := s.Leader()
		rest := s.Others(old)
		steady := s.WriteTo("steady", 8, 20*time.Millisecond, func() []*nodes.Node { return rest })
		old.MustRegister(nodes.Instance{Service: "probe", IP: "10.8.0.1", Port: 1}.Lasting())
		s.net.Isolate(s.number(old))
		o := &deposed{split: s, node: old, cut: time.Now()}
		o.ends = o.cut.Add(moving.Delete + 2*time.Second)
		o.wg.Go(o.writes)
		o.wg.Go(o.beats)
		o.wg.Go(o.freshReads)
		o.wg.Go(o.staleReads)
		var back time.Time
		s.Within(10*time.Second, "write at the majority", func() bool {
			back = steady.SentAfter(o.cut)
			return !back.IsZero()
		})
		outage := back.Sub(o.cut)
		t.Logf("outage %s", outage)
		s.row.Rounds++
		s.row.Outage(outage)
		if outage > 3*time.Second {
			t.Errorf("writes at the majority were back after %s, want 3 s at most", outage)
		}
		o.wg.Wait()
		s.net.Heal()
		s.follows(old)
		s.row.Wrote(steady.Sent(), checkAcked(t, s.Cluster, steady.Stop()), 0)
	}
	for _, n := range s.Nodes() {
		if keys := n.Keys("refused"); len(keys) != 0 {
			t.Errorf("%s lists %d registrations that were refused", n.ID, len(keys))
		}
	}
	s.judge(float64(4 * s.row.Rounds))
}

// follows waits until a node that was cut off follows and takes writes.
func (s *split) follows(old *nodes.Node) {
	s.t.Helper()
	healed := time.Now()
	s.Within(10*time.Second, old.ID+" that follows another", func() bool {
		leader := old.NamesLeader()
		return leader != "" && leader != old.ID
	})
	s.Within(5*time.Second, "write through "+old.ID, func() bool {
		a, err := old.Register(nodes.Instance{Service: "after", IP: "10.8.0.2", Port: 1}.Lasting())
		return err == nil && a.OK()
	})
	took := time.Since(healed)
	s.t.Logf("%s follows and takes writes %s after it was healed", old.ID, took)
	if took > 4*time.Second {
		s.t.Errorf("%s follows and takes writes %s after it was healed, want 4 s at most", old.ID, took)
	}
}

// during calls f again and again until the cut ends.
func (o *deposed) during(f func()) {
	for time.Now().Before(o.ends) {
		f()
		pass(50 * time.Millisecond)
	}
}

// writes are refused within their deadline of three seconds.
func (o *deposed) writes() {
	port, longest := 0, time.Duration(0)
	o.during(func() {
		port++
		sent := time.Now()
		a, err := o.node.Register(nodes.Instance{Service: "refused", IP: "10.8.0.3", Port: port}.Lasting())
		longest = max(longest, time.Since(sent))
		if err != nil || a.Status != 503 {
			o.t.Errorf("a write %s after the cut: %d %q %v", sent.Sub(o.cut), a.Status, a.Body, err)
		}
	})
	o.t.Logf("%d writes were refused within %s each", port, longest)
	if longest > 4*time.Second {
		o.t.Errorf("a write was refused after %s, want 3 s", longest)
	}
}

// beats are taken for three seconds after the last word from a leader, itself among them.
func (o *deposed) beats() {
	in := nodes.Instance{Service: "probe", IP: "10.8.0.1", Port: 1}
	const limit = 5 * time.Second    // 0.7 s as a leader, three more, and what a busy machine takes
	var refused, taken time.Duration // the first that was refused, the last that was taken
	o.during(func() {
		sent := time.Now()
		a, err := o.node.Do("PUT", "/instance/beat", in.Form())
		since := sent.Sub(o.cut)
		switch {
		case err != nil || a.Status != 200 && a.Status != 503:
			o.t.Errorf("a beat %s after the cut: %d %q %v", since, a.Status, a.Body, err)
		case a.Status == 503 && refused == 0:
			refused = since
		case a.Status == 200:
			taken = since
		}
	})
	o.t.Logf("beats were taken until %s and refused from %s after the cut", taken, refused)
	if taken > limit {
		o.t.Errorf("a beat was taken %s after the cut, want 3 s", taken)
	}
}

// freshReads are refused from the start: no majority can have confirmed the leader.
func (o *deposed) freshReads() {
	o.during(func() {
		asked := time.Now()
		form := nodes.Instance{Service: "alive"}.Form()
		form.Set("consistency", "linearizable")
		if a, err := o.node.Do("GET", "/instance/list", form); err != nil || a.Status == 200 {
			o.t.Errorf("a linearizable read %s after the cut: %d %v", asked.Sub(o.cut), a.Status, err)
		}
	})
}

// staleReads are answered, and say how old they are.
func (o *deposed) staleReads() {
	o.during(func() {
		asked := time.Now()
		a, err := o.node.Do("GET", "/instance/list", nodes.Instance{Service: "alive"}.Form())
		if err != nil || a.Status != 200 {
			o.t.Errorf("a read %s after the cut: %d %q %v", asked.Sub(o.cut), a.Status, a.Body, err)
			return
		}
		since := asked.Sub(o.cut)
		lag, err := strconv.Atoi(a.Header.Get("X-Rollcall-Lag-Ms"))
		if since > 3*time.Second && (err != nil || lag < 1000 || a.Header.Get("X-Rollcall-Leader") != "") {
			o.t.Errorf("a read %s after the cut is not marked as old: %v", since, a.Header)
		}
	})
}
