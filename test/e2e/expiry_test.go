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
	companion := nodes.Instance{IP: "10.0.0.9", Port: 81} // healthy, or the protect threshold shows all as healthy
	follower := c.Followers()[0]
	var wg sync.WaitGroup
	stopCanary := slowest(c)
	type outcome struct {
		name       string
		in         nodes.Instance
		sent, done time.Time
		down, gone map[string]sight
	}
	outcomes := make(chan outcome, len(cases))
	for name, in := range cases {
		in.Service, in.IP, in.Port = name, "10.0.0.1", 80
		companion.Service = name
		follower.MustRegister(companion)
		defer c.KeepBeating(companion)()
		o := outcome{name: name, in: in, sent: time.Now()}
		if a, err := follower.Register(in); err != nil || !a.OK() {
			t.Fatalf("register: %v %+v", err, a)
		}
		o.done = time.Now()
		wg.Go(func() {
			o.down, o.gone = watchExpiry(c, in, o.done.Add(40*time.Second))
			outcomes <- o
		})
	}
	wg.Wait()
	close(outcomes)
	late := stopCanary()
	pause := 0.0
	for _, n := range c.Nodes() {
		s, err := n.Metric("rollcall_health_pause_compensation_seconds_total")
		if err != nil {
			t.Fatal(err)
		}
		pause = max(pause, s)
	}
	slack := time.Second + late + time.Duration(pause*float64(time.Second))
	for o := range outcomes {
		timeout, deletion := o.in.Timeout, o.in.Delete
		if o.in.Interval == 0 {
			timeout, deletion = 15*time.Second, 30*time.Second
		}
		for _, n := range c.Nodes() {
			within(t, o.name+" unhealthy on "+n.ID, o.down, n.ID, o.sent, o.done, timeout, slack)
			within(t, o.name+" gone on "+n.ID, o.gone, n.ID, o.sent, o.done, deletion, slack)
		}
	}
	t.Logf("slowest commit meanwhile %s, compensated %.1f s", late, pause)
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
