package health

import (
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollcall-io/rollcall/registry"
)

// churn kills the leader every 10 s, with 2 s without one, and returns when the deadline
// is over. Killed means: what it knew is lost.
func (w *world) churn(first, total time.Duration, done func() bool) {
	end := time.Now().Add(total)
	time.Sleep(first)
	for i := 2; time.Now().Before(end) && !done(); i++ {
		w.kill()
		time.Sleep(2 * time.Second)
		w.elect(fmt.Sprintf("n%d", i%3+1))
		time.Sleep(8 * time.Second)
	}
}

// kill deposes the leader and makes it forget what it knew.
func (w *world) kill() {
	n := w.nodes[w.leader]
	w.depose()
	n.keeper.notes.set(0, nil, n.keeper.opts.Now())
}

// beating sends a beat for each key at each interval, to one node after the other, until
// stop is called.
func (w *world) beating(interval time.Duration, keys ...registry.InstanceKey) (stop func()) {
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		ticker := time.NewTicker(interval)
		defer ticker.Stop()
		for i := 0; ; i++ {
			for j, key := range keys {
				w.beatSomewhere(i+j, key)
			}
			select {
			case <-quit:
				return
			case <-ticker.C:
			}
		}
	}()
	return func() { close(quit); <-done }
}

// beatSomewhere tries the nodes in turn, as clients do, from the i-th on.
func (w *world) beatSomewhere(i int, key registry.InstanceKey) {
	for try := range 3 {
		n := w.node(fmt.Sprintf("n%d", (i+try)%3+1))
		if _, err := n.keeper.Beat(w.t.Context(), registry.Beat{Key: key}); err == nil {
			return
		}
	}
}

func TestTakeOver_LivingStayWhileLeadersChange(t *testing.T) {
	inWorld(t, func(w *world, _, _, _ *node) {
		var keys []registry.InstanceKey
		for i := range 30 {
			keys = append(keys, w.register(specOf(address(i))))
		}
		stop := w.beating(5*time.Second, keys...)
		w.churn(3*time.Second, 5*time.Minute, func() bool { return false })
		stop()
		for _, c := range w.commands() {
			t.Errorf("proposed: %#v", c.command)
		}
	})
}

func TestTakeOver_DeadLeaveWhileLeadersChange(t *testing.T) {
	for _, row := range []struct {
		name  string
		spec  []registry.Pair
		own   time.Duration // the delete timeout
		most  time.Duration // an interval and a half unseen, a grace, and the leaderless time
		first []time.Duration
	}{
		{"short", timeouts(1000, 6000, 12000), 12 * time.Second, 5500 * time.Millisecond, every(time.Second, 10)},
		{"defaults", nil, 30 * time.Second, 16500 * time.Millisecond, every(time.Second, 10)},
	} {
		for _, first := range row.first {
			t.Run(fmt.Sprintf("%s/%s", row.name, first), func(t *testing.T) {
				inWorld(t, func(w *world, _, _, _ *node) {
					key := w.register(specOf(address(1), row.spec...))
					began := time.Now()
					var after atomic.Int64
					w.watchGone(key, func() { after.Store(int64(time.Since(began))) })
					w.churn(first, 2*time.Minute, func() bool { return after.Load() != 0 })
					gone := time.Duration(after.Load())
					if gone <= row.own || gone > row.own+row.most {
						t.Errorf("gone after %s, want %s and at most %s more", gone, row.own, row.most)
					}
				})
			})
		}
	}
}

func TestTakeOver_UnhealthyLeaveHoweverFastLeadersChange(t *testing.T) {
	inWorld(t, func(w *world, _, _, _ *node) {
		key := w.register(specOf(address(1)))
		time.Sleep(20 * time.Second)
		if got := w.health(key); got != "down" {
			t.Fatalf("%s after 20 s", got)
		}
		for i := range 6 { // each term is shorter than the grace of 7 s
			w.kill()
			time.Sleep(time.Second)
			w.elect(fmt.Sprintf("n%d", (i+1)%3+1))
			time.Sleep(3 * time.Second)
		}
		if got := w.health(key); got != "gone" {
			t.Errorf("%s, 44 s after the last beat", got)
		}
	})
}

// watchGone calls do when the instance is gone.
func (w *world) watchGone(key registry.InstanceKey, do func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.observed++
	w.observers[-w.observed] = goneObserver{w.leases[w.state.Instance(key).Lease].LeaseRef, do}
}

type goneObserver struct {
	ref registry.LeaseRef
	do  func()
}

func (goneObserver) LeaseGranted(registry.Lease)          {}
func (goneObserver) LeaseFlipped(registry.LeaseRef, bool) {}
func (goneObserver) LeasesReset()                         {}
func (g goneObserver) LeaseReleased(ref registry.LeaseRef) {
	if ref == g.ref {
		g.do()
	}
}

func every(step time.Duration, n int) (all []time.Duration) {
	for i := range n {
		all = append(all, time.Duration(i+1)*step)
	}
	return all
}

func TestTakeOver_FreshUnlessKnownSilent(t *testing.T) {
	inWorld(t, func(w *world, _, n2, _ *node) {
		quiet := w.register(specOf(address(1)))
		time.Sleep(9 * time.Second) // silent for more than 7.5 s and a list interval
		late := w.register(specOf(address(2)))
		time.Sleep(2 * time.Second)
		w.kill()
		w.elect("n2")
		began := time.Now()
		time.Sleep(6900 * time.Millisecond)
		if got := w.health(quiet); got != "up" {
			t.Fatalf("%s before two beats' time was over", got)
		}
		time.Sleep(time.Second)
		if got := w.health(quiet); got != "down" {
			t.Errorf("%s, %s after the take-over: it was silent before", got, time.Since(began))
		}
		time.Sleep(time.Until(began.Add(14900 * time.Millisecond)))
		if got := w.health(late); got != "up" {
			t.Errorf("%s within a fresh timeout", got)
		}
		time.Sleep(time.Second)
		if got := w.health(late); got != "down" {
			t.Errorf("%s after a fresh timeout", got)
		}
		if s := n2.keeper.Status(); !s.Leading || s.Leases != 2 || s.Silent != 2 {
			t.Errorf("status %+v", s)
		}
	})
}

func TestTakeOver_UnhealthyStayUnhealthy(t *testing.T) {
	inWorld(t, func(w *world, _, _, _ *node) {
		key := w.register(specOf(address(1)))
		time.Sleep(16 * time.Second)
		w.kill()
		time.Sleep(20 * time.Second) // longer than notes are good for
		w.elect("n3")
		time.Sleep(29 * time.Second)
		if got := w.health(key); got != "down" {
			t.Fatalf("%s, want down: its delete timer started afresh", got)
		}
		time.Sleep(2 * time.Second)
		if got := w.health(key); got != "gone" {
			t.Errorf("%s after a fresh delete timeout", got)
		}
	})
}

func TestTakeOver_KeptBeatWins(t *testing.T) {
	inWorld(t, func(w *world, _, n2, _ *node) {
		key := w.register(specOf(address(1)))
		time.Sleep(13 * time.Second)
		w.kill()
		n2.beat(key) // nobody leads: kept
		if got := n2.keeper.Status().KeptBeats; got != 1 {
			t.Fatalf("%d kept beats, want 1", got)
		}
		time.Sleep(2 * time.Second)
		w.elect("n3")
		time.Sleep(14 * time.Second)
		if got := w.health(key); got != "up" {
			t.Errorf("%s: the kept beat was lost", got)
		}
	})
}

func TestTakeOver_KeptBeatWinsOnTheNewLeaderItself(t *testing.T) {
	inWorld(t, func(w *world, _, n2, _ *node) {
		key := w.register(specOf(address(1)))
		time.Sleep(13 * time.Second)
		w.kill()
		n2.beat(key)
		w.elect("n2")
		time.Sleep(14 * time.Second)
		if got := w.health(key); got != "up" {
			t.Errorf("%s: the kept beat was lost", got)
		}
	})
}

func TestTakeOver_NothingExpiresEarly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.stop()
		for i := range 20 {
			w.register(specOf(address(i)))
		}
		time.Sleep(time.Hour) // all nodes were down
		w.start("n1")
		w.elect("n1")
		time.Sleep(14900 * time.Millisecond)
		if n := len(w.commands()); n != 0 {
			t.Fatalf("%d commands before a fresh timeout", n)
		}
		time.Sleep(16 * time.Second)
		if got := w.Service(testService).Len(); got != 0 {
			t.Errorf("%d dead instances left", got)
		}
	})
}

// TestTakeOver_RestartedLeaderAsksTheOthers: a leader that crashed and won again at once
// had no notes, and everything silent started afresh.
func TestTakeOver_RestartedLeaderAsksTheOthers(t *testing.T) {
	for _, apart := range []bool{false, true} {
		inWorld(t, func(w *world, _, n2, _ *node) {
			key := w.register(specOf(address(1)))
			time.Sleep(9 * time.Second)
			w.with(func() { w.apart = apart })
			w.crash()
			time.Sleep(time.Second)
			w.start("n1")
			w.elect("n1")
			time.Sleep(7700 * time.Millisecond) // the grace is over
			if got, want := w.health(key), map[bool]string{false: "down", true: "up"}[apart]; got != want {
				t.Errorf("nodes apart %v: %s, want %s", apart, got, want)
			}
		})
	}
}

func TestTakeOver_LeaderThatStoodStillKnowsNothingNew(t *testing.T) {
	inWorld(t, func(w *world, n1, _, _ *node) {
		w.register(specOf(address(1)))
		time.Sleep(9 * time.Second)
		if got := n1.keeper.Silent(); got.Term != 1 || got.Age > 10 || len(got.Leases) != 1 || got.Leases[0].Age < 9000 {
			t.Errorf("a leader knows %+v", got)
		}
		n1.pause(20 * time.Second)
		if got := n1.keeper.Silent(); got.Age < 18_000 || got.Leases[0].Age > 11_500 {
			t.Errorf("after a pause of 20 s it knows %+v", got)
		}
		w.depose()
		if got := n1.keeper.Silent(); got.Age < 18_000 || got.Leases[0].Age > 11_500 {
			t.Errorf("no longer the leader, it knows %+v", got)
		}
	})
}

func TestTakeOver_GraceIsOwedOnce(t *testing.T) {
	inWorld(t, func(w *world, _, _, _ *node) {
		key := w.register(specOf(address(1)))
		time.Sleep(13 * time.Second)
		for i := range 3 { // 2.4 s each make the grace of 7.04 s
			if got := w.health(key); got != "up" {
				t.Fatalf("%s when leaders gave it %d times 2.4 s", got, i)
			}
			w.kill()
			time.Sleep(time.Second)
			w.elect(fmt.Sprintf("n%d", (i+1)%3+1))
			time.Sleep(2400 * time.Millisecond)
		}
		w.kill()
		w.elect("n1")
		time.Sleep(2100 * time.Millisecond)
		if got := w.health(key); got != "down" {
			t.Errorf("%s when it had its grace", got)
		}
	})
}
