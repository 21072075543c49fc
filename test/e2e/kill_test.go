package e2e

import (
	"math"
	"net"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/rollcall-io/rollcall/test/e2e/nodes"
	"github.com/rollcall-io/rollcall/test/faults/figures"
)

// TestLeaderKilled_NoAcknowledgedWriteIsLostAndNobodyExpires: a new leader that knew only
// old times evicted everybody at once (etcd-io/etcd #9395, #13294; hashicorp/consul PR
// #912; alibaba/nacos #1873), and writes that were acknowledged were gone.
func TestLeaderKilled_NoAcknowledgedWriteIsLostAndNobodyExpires(t *testing.T) {
	row := figures.Track(t, "leader killed under load")
	c := nodes.Start(t, binary, 3)
	alive := block("alive", "10.9.0.1", 2000, 30, brief)
	c.Nodes()[0].MustRegister(alive...)
	lives := keepAlive(c, alive)
	followers := c.Followers() // after the first kill they are simply other nodes than the dead one
	writers := c.Write(64, 20*time.Millisecond, func() []*nodes.Node { return followers })

	rounds, slow := either(3, 20), 0
	for range rounds {
		pass(2 * time.Second)
		leader := c.Leader()
		killed := time.Now()
		leader.Kill()
		var back time.Time
		c.Until("write after the leader's death", func() bool {
			back = writers.SentAfter(killed)
			return !back.IsZero()
		})
		outage := back.Sub(killed)
		t.Logf("outage %d ms", outage.Milliseconds())
		row.Rounds++
		row.Outage(outage)
		if outage > 5*time.Second {
			t.Errorf("writes were back after %s, want 5 s at most", outage)
		}
		if outage > 3*time.Second {
			slow++
		}
		leader.Start()
		c.WaitReady(leader)
	}
	if allowed := int(math.Ceil(float64(rounds) / 20)); slow > allowed {
		t.Errorf("writes were back within 3 s in %d of %d rounds", rounds-slow, rounds)
	}
	acked := writers.Stop()
	row.FalseEvictions = nobodyDied(t, lives)
	total := checkAcked(t, c, acked)
	row.Wrote(writers.Sent(), total, 0)
	t.Logf("%d acknowledged writes listed on all nodes", total)
}

// TestAllKilled_EverythingIsThereAndNothingExpiresBeforeAFullTimeout is about an outage of
// the whole cluster (polarismesh/polaris #104; hashicorp/consul #3569, #6231). The flag
// that forms a cluster is there at each start (hashicorp/raft #336, rqlite/rqlite #1581).
func TestAllKilled_EverythingIsThereAndNothingExpiresBeforeAFullTimeout(t *testing.T) {
	row := figures.Track(t, "all nodes killed")
	c := nodes.Start(t, binary, 3)
	like := nodes.Instance{Interval: time.Second, Timeout: 7 * time.Second, Delete: 8 * time.Second}
	silent := block("svc", "10.0.0.1", 1000, 20, like)
	for i, in := range silent {
		c.Nodes()[i%3].MustRegister(in)
	}
	target, err := net.Listen("tcp", "127.0.0.1:0") // what the persistent instance is probed at
	if err != nil {
		t.Fatal(err)
	}
	defer target.Close()
	form := nodes.Instance{Service: "lasting", IP: "127.0.0.1", Port: target.Addr().(*net.TCPAddr).Port}.Form()
	form.Set("ephemeral", "false")
	if a, err := c.Nodes()[0].Do(http.MethodPost, "/instance", form); err != nil || !a.OK() {
		t.Fatalf("register a persistent instance: %v %+v", err, a)
	}
	for _, n := range c.Nodes() {
		n.Kill()
	}
	pass(like.Delete + time.Second)      // longer than any of them may be silent
	full := time.Now().Add(like.Timeout) // no leader begins to count before this
	for _, n := range c.Nodes() {
		n.Start()
	}
	c.WaitReady(c.Nodes()...)
	looked := 0
	for ; time.Now().Before(full); looked++ {
		for service, want := range map[string]int{"svc": len(silent), "lasting": 1} {
			wantHealthy(t, c, service, want, full)
		}
	}
	t.Logf("looked %d times", looked)
	row.Rounds = 1
	row.Wrote(len(silent)+1, len(silent)+1, 0)
	row.FalseEvictions = 0
	for _, n := range c.Nodes() { // they are silent still, so they leave in the end
		c.Until("silent instances gone on "+n.ID, func() bool { keys := n.Keys("svc"); return keys != nil && len(keys) == 0 })
	}
}

// wantHealthy checks that all nodes that answer before a time list so many instances of a
// service, all healthy.
func wantHealthy(t *testing.T, c *nodes.Cluster, service string, want int, before time.Time) {
	t.Helper()
	for _, n := range c.Nodes() {
		healthy, keys := 0, n.Keys(service)
		for _, up := range keys {
			if up {
				healthy++
			}
		}
		if healthy != want && keys != nil && time.Now().Before(before) {
			t.Fatalf("%s shows %d healthy of %d of %s", n.ID, healthy, want, service)
		}
	}
}

// keepAlive lets instances live through all nodes.
func keepAlive(c *nodes.Cluster, living []nodes.Instance) *nodes.Lives {
	return c.KeepAlive(func(i int) []*nodes.Node {
		return slices.Concat(c.Nodes()[i%len(c.Nodes()):], c.Nodes()[:i%len(c.Nodes())])
	}, living...)
}

// nobodyDied ends the clients and wants none to have been called dead that was proven to
// live. It returns how many sights there were of such.
func nobodyDied(t *testing.T, lives *nodes.Lives) int {
	t.Helper()
	sights, gap := lives.Stop()
	if len(sights) > 0 {
		t.Errorf("%d false sights, the first: %s", len(sights), sights[0])
	}
	t.Logf("no instance was without an acknowledged beat for longer than %s", gap)
	return len(sights)
}

// leaderLoop kills the leader every so often; each time another node leads, since the
// dead one is started again only before the next kill.
type leaderLoop struct {
	c      *nodes.Cluster
	every  time.Duration
	next   time.Time
	fallen *nodes.Node
	kills  int
}

// step kills when it is time.
func (l *leaderLoop) step() {
	if time.Now().Before(l.next) {
		return
	}
	if l.fallen != nil {
		l.fallen.Start()
		l.c.WaitReady(l.fallen)
	}
	l.next = time.Now().Add(l.every)
	l.fallen = l.c.Leader()
	l.fallen.Kill()
	l.kills++
}

func TestLeaderKilledAgainAndAgain_TheDeadLeaveAndTheLivingStay(t *testing.T) {
	row := figures.Track(t, "leader killed again and again")
	like := nodes.Instance{Interval: 500 * time.Millisecond, Timeout: 3 * time.Second, Delete: 6 * time.Second}
	if long() {
		like = nodes.Instance{Interval: time.Second, Timeout: 6 * time.Second, Delete: 12 * time.Second}
	}
	limit := like.Delete + either(8*time.Second, 5*time.Second)
	c := nodes.Start(t, binary, 3)
	living, dead := block("svc", "10.0.0.1", 1000, 20, like), block("svc", "10.0.0.2", 1000, 20, like)
	c.Nodes()[0].MustRegister(living...)
	lives := keepAlive(c, living)
	killer := leaderLoop{c: c, every: either(6*time.Second, 10*time.Second), next: time.Now()}
	killer.step()
	c.Others(killer.fallen)[0].MustRegister(dead...)
	start, gone := time.Now(), time.Duration(0)
	for killer.kills < either(3, 6) || gone == 0 && time.Since(start) < limit {
		killer.step()
		for _, n := range c.Nodes() {
			keys := n.Keys("svc")
			if keys == nil {
				continue // down or not ready
			}
			if gone == 0 && len(keys) == len(living) {
				gone = time.Since(start)
			}
		}
		pass(50 * time.Millisecond)
	}
	row.FalseEvictions = nobodyDied(t, lives)
	if gone == 0 || gone > limit {
		t.Errorf("the silent left after %s while leaders changed, want %s at most", gone, limit)
	}
	row.Rounds, row.Immortals = killer.kills, 0
	t.Logf("the silent left after %s", gone)
}
