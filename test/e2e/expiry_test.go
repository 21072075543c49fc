package e2e

import (
	"sync"
	"testing"
	"time"

	"github.com/rollcall-io/rollcall/test/e2e/nodes"
)

// sight is when something was first seen: asked before, known after.
type sight struct{ asked, known time.Time }

// watchExpiry notes for each node when a key is first unhealthy and first gone.
func watchExpiry(c *nodes.Cluster, in nodes.Instance, until time.Time) (down, gone map[string]sight) {
	down, gone = map[string]sight{}, map[string]sight{}
	var mu sync.Mutex
	var wg sync.WaitGroup
	for _, n := range c.Nodes() {
		wg.Go(func() {
			listed := false // the registration may be on its way to this node still
			for time.Now().Before(until) {
				asked := time.Now()
				keys := n.Keys(in.Service)
				seen := sight{asked, time.Now()}
				healthy, found := keys[in.Key()]
				listed = listed || found
				mu.Lock()
				if _, before := down[n.ID]; found && !healthy && !before {
					down[n.ID] = seen
				}
				if _, before := gone[n.ID]; keys != nil && listed && !found && !before {
					gone[n.ID] = seen
				}
				done := len(gone) == len(c.Nodes())
				mu.Unlock()
				if done {
					return
				}
				pass(20 * time.Millisecond)
			}
		})
	}
	wg.Wait()
	return down, gone
}

// slowest registers again and again until stop is called, which returns the longest that
// one took: what the machine itself adds to any commit at present.
func slowest(c *nodes.Cluster) (stop func() time.Duration) {
	var mu sync.Mutex
	var worst time.Duration
	ended := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := 0; ; i++ {
			start := time.Now()
			_, _ = c.Nodes()[0].Register(nodes.Instance{Service: "canary", IP: "10.7.0.1", Port: 1 + i%100})
			mu.Lock()
			worst = max(worst, time.Since(start))
			mu.Unlock()
			select {
			case <-ended:
				return
			case <-time.After(100 * time.Millisecond):
			}
		}
	})
	return func() time.Duration { close(ended); wg.Wait(); return worst }
}

// expiring is an instance that falls silent, and what was seen of it.
type expiring struct {
	in         nodes.Instance
	sent, done time.Time // around its registration
	down, gone map[string]sight
}

// fallSilent registers one instance that never beats, and a healthy companion, without
// which the protect threshold would show it as healthy.
func fallSilent(t *testing.T, c *nodes.Cluster, via *nodes.Node, name string, in nodes.Instance) *expiring {
	t.Helper()
	in.Service, in.IP, in.Port = name, "10.0.0.1", 80
	companion := nodes.Instance{Service: name, IP: "10.0.0.9", Port: 81}
	via.MustRegister(companion)
	t.Cleanup(c.KeepBeating(companion))
	e := &expiring{in: in, sent: time.Now()}
	if a, err := via.Register(in); err != nil || !a.OK() {
		t.Fatalf("register: %v %+v", err, a)
	}
	e.done = time.Now()
	return e
}

// judge checks what was seen on each node.
func (e *expiring) judge(t *testing.T, c *nodes.Cluster, slack time.Duration) {
	t.Helper()
	timeout, deletion := e.in.Timeout, e.in.Delete
	if e.in.Interval == 0 {
		timeout, deletion = 15*time.Second, 30*time.Second
	}
	for _, n := range c.Nodes() {
		within(t, e.in.Service+" unhealthy on "+n.ID, e.down, n.ID, e.sent, e.done, timeout, slack)
		within(t, e.in.Service+" gone on "+n.ID, e.gone, n.ID, e.sent, e.done, deletion, slack)
	}
}

// compensated is the time that some leader took out of all leases because it stood still.
func compensated(t *testing.T, c *nodes.Cluster) time.Duration {
	t.Helper()
	longest := 0.0
	for _, n := range c.Nodes() {
		seconds, err := n.Metric("rollcall_health_pause_compensation_seconds_total")
		if err != nil {
			t.Fatal(err)
		}
		longest = max(longest, seconds)
	}
	return time.Duration(longest * float64(time.Second))
}

// TestExpiry_StrictlyAfterTheTimeoutAndWithinASecondOnAllNodes: leases lived twice as long
// as they said (Netflix/eureka #531, #1450).
func TestExpiry_StrictlyAfterTheTimeoutAndWithinASecondOnAllNodes(t *testing.T) {
	c := nodes.Start(t, binary, 3)
	cases := map[string]nodes.Instance{
		"brief": {Interval: time.Second, Timeout: 3 * time.Second, Delete: 5 * time.Second},
		"odd":   {Interval: 700 * time.Millisecond, Timeout: 2100 * time.Millisecond, Delete: 6300 * time.Millisecond},
	}
	if long() {
		cases["defaults"] = nodes.Instance{}
	}
	follower := c.Followers()[0]
	stopCanary := slowest(c)
	var all []*expiring
	var wg sync.WaitGroup
	for name, in := range cases {
		e := fallSilent(t, c, follower, name, in)
		all = append(all, e)
		wg.Go(func() { e.down, e.gone = watchExpiry(c, e.in, e.done.Add(40*time.Second)) })
	}
	wg.Wait()
	late, pause := stopCanary(), compensated(t, c)
	for _, e := range all {
		e.judge(t, c, time.Second+late+pause)
	}
	t.Logf("slowest commit meanwhile %s, compensated %s", late, pause)
}

// within checks that something was first seen after the time that began at sent at the
// earliest and at done at the latest, and not much after.
func within(t *testing.T, what string, seen map[string]sight, node string, sent, done time.Time, want, slack time.Duration) {
	t.Helper()
	s, found := seen[node]
	switch {
	case !found:
		t.Errorf("%s: never seen", what)
	case s.known.Sub(sent) <= want:
		t.Errorf("%s: seen after %s, want strictly more than %s", what, s.known.Sub(sent), want)
	case s.asked.Sub(done) > want+slack:
		t.Errorf("%s: seen after %s, want %s and %s at most", what, s.asked.Sub(done), want, slack)
	default:
		t.Logf("%s: %.2f s", what, s.asked.Sub(done).Seconds())
	}
}
