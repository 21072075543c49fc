package e2e

import (
	"testing"
	"time"

	"github.com/rollcall-io/rollcall/test/e2e/nodes"
)

// TestLeaderRestartedEveryFourSeconds_TheDeadLeaveAndTheLivingStay: a leader that was
// killed and started again at once won again, knew of nobody's silence and gave everybody
// two beats' time that it did not live for.
func TestLeaderRestartedEveryFourSeconds_TheDeadLeaveAndTheLivingStay(t *testing.T) {
	like := nodes.Instance{Interval: time.Second, Timeout: 4 * time.Second, Delete: 8 * time.Second}
	c := nodes.Start(t, binary, 3)
	living, dead := block("svc", "10.0.0.1", 1000, 20, like), block("svc", "10.0.0.2", 1000, 20, like)
	c.Nodes()[0].MustRegister(living...)
	lives := keepAlive(c, living)
	c.Nodes()[0].MustRegister(dead...)
	start, gone := time.Now(), time.Duration(0)
	next, restarts := start, 0
	for time.Since(start) < either(36*time.Second, 3*time.Minute) {
		if time.Now().After(next) {
			leader := c.Leader()
			leader.Kill()
			leader.Start()
			next = time.Now().Add(4 * time.Second)
			restarts++
		}
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
	nobodyDied(t, lives)
	if limit := 30 * time.Second; gone == 0 || gone > limit {
		t.Errorf("the silent left after %s while the leader was restarted %d times, want %s at most", gone, restarts, limit)
	}
	t.Logf("the silent left after %s; %d restarts", gone, restarts)
}
