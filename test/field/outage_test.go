package field

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rollcall-io/rollcall/internal/app"
	"github.com/rollcall-io/rollcall/internal/clustertest"
)

// TestNoLeader_ReadsGoOnAndWritesAreRefusedInTime: without a majority requests failed with
// a 500, hung, or reads stopped too (hashicorp/consul #1456, PR #2175; alibaba/nacos
// #3665, #10514).
func TestNoLeader_ReadsGoOnAndWritesAreRefusedInTime(t *testing.T) {
	c := startCluster(t)
	c.Leader().MustRegister("svc", "10.1.0.1", 80, lasting)
	last := c.Followers()[0]
	c.Until("the instance on "+last.ID, func() bool { return last.Healthy("svc") == 1 })
	for _, m := range c.Members() {
		if m != last {
			c.Isolate(m, clustertest.Fault{Drop: true})
		}
	}
	refused := func(what string, send func() (clustertest.Answer, error)) {
		t.Helper()
		start := time.Now()
		a, err := send()
		if took := time.Since(start); err != nil || a.Status != http.StatusServiceUnavailable || a.Body == "" || took > 10*time.Second { // 3 s on an idle machine
			t.Errorf("%s: %v %d %q after %s, want 503 with a reason soon", what, err, a.Status, a.Body, took)
		}
	}
	refused("registration", func() (clustertest.Answer, error) { return last.Register("svc", "10.1.0.2", 80) })
	c.Until("beats refused", func() bool { // they are kept for a leader for three seconds
		a, err := last.Beat("svc", "10.1.0.1", 80)
		return err == nil && a.Status == http.StatusServiceUnavailable
	})
	refused("beat", func() (clustertest.Answer, error) { return last.Beat("svc", "10.1.0.1", 80) })
	a, err := last.Do(http.MethodGet, "/instance/list", "serviceName=svc")
	lag, bad := strconv.Atoi(a.Header.Get("X-Rollcall-Lag-Ms"))
	if err != nil || a.Status != http.StatusOK || a.Header.Get("X-Rollcall-Leader") != "" || bad != nil || lag < 1000 {
		t.Errorf("a read without a leader: %v, %d, headers %v: it must say how old it is", err, a.Status, a.Header)
	}
	if n := last.Healthy("svc"); n != 1 {
		t.Errorf("%d healthy of 1 while there is no leader", n)
	}
	c.Heal()
	c.Until("writes again", func() bool {
		a, err := last.Register("svc", "10.1.0.3", 80, lasting)
		return err == nil && a.Status == http.StatusOK
	})
}

// sent is a write and what was said of it.
type sent struct {
	port   int
	status int
	body   string
	took   time.Duration
	err    error
}

// writeThroughout sends one write after another from several clients through the nodes
// while disturb runs.
func writeThroughout(c *cluster, nodes []*member, service string, disturb func()) []sent {
	const clients = 6
	var mu sync.Mutex
	var all []sent
	var wg sync.WaitGroup
	done := make(chan struct{})
	for k := range clients {
		wg.Go(func() {
			for port := k; ; port += clients {
				start := time.Now()
				a, err := nodes[port%len(nodes)].Register(service, "10.1.0.1", port, lasting)
				mu.Lock()
				all = append(all, sent{port, a.Status, a.Body, time.Since(start), err})
				mu.Unlock()
				select {
				case <-done:
					return
				case <-time.After(10 * time.Millisecond):
				}
			}
		})
	}
	disturb()
	close(done)
	wg.Wait()
	return all
}

// checkWrites: each write ended in time with ok or a 503, and what was ok is there, once.
func checkWrites(t *testing.T, c *cluster, service string, all []sent) {
	t.Helper()
	acked := map[int]bool{}
	for _, s := range all {
		switch {
		case s.err != nil || s.took > 12*time.Second:
			t.Errorf("write of port %d: %v after %s", s.port, s.err, s.took)
		case s.status == http.StatusOK:
			acked[s.port] = true
		case s.status != http.StatusServiceUnavailable || strings.Contains(s.body, "redirect"):
			t.Errorf("write of port %d: %d %s", s.port, s.status, s.body)
		}
	}
	if len(acked) == 0 {
		t.Fatal("not one write was acknowledged")
	}
	c.WaitReady()
	var first []clustertest.Host
	for _, m := range c.Members() {
		var hosts []clustertest.Host
		c.Until("acknowledged writes on "+m.ID, func() bool {
			var err error
			hosts, err = m.List(service)
			found := 0
			for _, h := range hosts {
				if acked[h.Port] {
					found++
				}
			}
			return err == nil && found == len(acked) && (first == nil || len(hosts) == len(first))
		})
		if first == nil {
			first = hosts
		}
		for i, h := range hosts {
			if h.Port != first[i].Port {
				t.Fatalf("%s lists port %d where %s lists %d", m.ID, h.Port, c.Members()[0].ID, first[i].Port)
			}
		}
	}
	t.Logf("%d writes, %d acknowledged", len(all), len(acked))
}

// others are all members but one, whoever leads by now.
func others(c *cluster, but *member) (rest []*member) {
	for _, m := range c.Members() {
		if m != but {
			rest = append(rest, m)
		}
	}
	return rest
}

// agreed waits until all nodes name the same leader, and returns it.
func agreed(c *cluster) *member {
	var leader *member
	c.Until("one leader for all", func() bool {
		leader = c.Leader()
		for _, m := range c.Running() {
			if id, _, _ := m.Node.Raft().Leader(); id != leader.ID {
				return false
			}
		}
		return true
	})
	return leader
}

// awaitOther waits until another node than old leads.
func awaitOther(c *cluster, old *member) {
	c.Until("another leader", func() bool {
		for _, m := range c.Running() {
			if _, _, self := m.Node.Raft().Leader(); self && m != old {
				return true
			}
		}
		return false
	})
}

// TestElections_EveryWriteEndsInTime: two nodes each took the other for the leader and
// passed requests back and forth (alibaba/nacos #1503, #5113, #7104; hashicorp/nomad #6676).
func TestElections_EveryWriteEndsInTime(t *testing.T) {
	c := startCluster(t)
	all := writeThroughout(c, c.Members(), "svc", func() {
		for range 4 {
			leader := agreed(c)
			<-time.After(300 * time.Millisecond)
			c.Isolate(leader, clustertest.Fault{Reset: true})
			awaitOther(c, leader)
			<-time.After(300 * time.Millisecond)
			c.Heal()
		}
	})
	checkWrites(t, c, "svc", all)
}

// TestForwardedWrite_EndsWhenTheLeaderGoesSilent: a write that was passed to a leader that
// then died hung for the client's whole timeout, or was made twice
// (etcd-io/etcd #5214, #3380, PR #3587).
func TestForwardedWrite_EndsWhenTheLeaderGoesSilent(t *testing.T) {
	c := startCluster(t)
	leader := c.Leader()
	all := writeThroughout(c, others(c, leader), "svc", func() {
		for _, fault := range []clustertest.Fault{{Drop: true}, {Reset: true}} {
			<-time.After(300 * time.Millisecond)
			c.Isolate(leader, fault)
			awaitOther(c, leader)
			<-time.After(time.Second)
			c.Heal()
			leader = agreed(c)
		}
	})
	checkWrites(t, c, "svc", all)
}

// TestReturningFollower_DeposesNobody: a follower that was cut off raised its term and
// forced elections when it came back (hashicorp/consul #1782; hashicorp/raft #411, #524,
// PR #530).
func TestReturningFollower_DeposesNobody(t *testing.T) {
	// Longer than a busy machine stands still, so that any election is the follower's doing.
	const timeout = 1500 * time.Millisecond
	c := clustertest.Start(t, 3, func(o *app.Options) { o.ElectionTimeout = timeout })
	leader := c.Leader()
	rest := others(c, leader)
	away := rest[0]
	term := leader.Node.Raft().Status().Term
	all := writeThroughout(c, []*member{leader, rest[1]}, "svc", func() {
		c.Isolate(away, clustertest.Fault{Drop: true})
		<-time.After(4 * timeout)
		c.Heal()
		c.WaitReady()
		<-time.After(time.Second)
	})
	if now := c.Leader().Node.Raft().Status().Term; c.Leader() != leader || now != term {
		t.Errorf("%s leads in term %d, before it was %s in term %d", c.Leader().ID, now, leader.ID, term)
	}
	for _, s := range all {
		if s.status != http.StatusOK || s.took > 10*time.Second {
			t.Errorf("write of port %d: %d %s after %s", s.port, s.status, s.body, s.took)
		}
	}
	checkWrites(t, c, "svc", all)
}

// TestNodeThatWasAway_DoesNotStayStale: after a power cut or a partition one node kept an
// old view for ever, without an error (alibaba/nacos #6018, #5189, #12151, #6728;
// nacos-group/r-nacos #139, #206).
func TestNodeThatWasAway_DoesNotStayStale(t *testing.T) {
	c := startCluster(t)
	away := c.Followers()[0]
	rest := others(c, away)
	change := func(round int) {
		for i := range 40 {
			rest[i%2].MustRegister(fmt.Sprintf("svc-%d", i%4), "10.1.0.1", 1000*round+i, lasting)
		}
		for i := range 10 {
			must(t, rest[i%2], http.MethodDelete, "/instance", fmt.Sprintf("serviceName=svc-%d&ip=10.1.0.1&port=%d", i%4, 1000*round+i))
		}
	}
	same := func(when string) {
		t.Helper()
		for i := range 4 {
			service := fmt.Sprintf("serviceName=svc-%d", i)
			c.Until("the same list of "+service+" "+when, func() bool {
				a, err := away.Do(http.MethodGet, "/instance/list", service)
				b, err2 := rest[0].Do(http.MethodGet, "/instance/list", service)
				return err == nil && err2 == nil && a.Status == http.StatusOK && a.Body == b.Body
			})
		}
	}
	change(1)
	away.Stop()
	change(2)
	away.Start()
	c.Until("the node ready", func() bool { return away.Node.Raft().Ready() == nil })
	a, err := away.Do(http.MethodGet, "/instance/list", "serviceName=svc-0")
	b, err2 := rest[0].Do(http.MethodGet, "/instance/list", "serviceName=svc-0")
	if err != nil || err2 != nil || a.Body != b.Body {
		t.Errorf("ready, but stale: %s, the others say %s: %v %v", a.Body, b.Body, err, err2)
	}
	same("after a restart")
	c.Isolate(away, clustertest.Fault{Drop: true})
	change(3)
	c.Heal()
	same("after a partition")
}
