package health

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollcall-io/rollcall/registry"
)

// inWorld runs a test in virtual time with n1 leading; n2 and n3 follow.
func inWorld(t *testing.T, test func(w *world, n1, n2, n3 *node), change ...func(*Options)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		n1, n2, n3 := w.start("n1", change...), w.start("n2", change...), w.start("n3", change...)
		defer w.stop()
		w.elect("n1")
		time.Sleep(2 * time.Second) // followers have met the leader
		test(w, n1, n2, n3)
	})
}

func isFlip(healthy bool) func(registry.Command) bool {
	return func(c registry.Command) bool {
		b, ok := c.(registry.HealthBatch)
		return ok && b.Items[0].Healthy == healthy
	}
}

func isEvict(c registry.Command) bool { _, ok := c.(registry.EvictBatch); return ok }

func TestExpiry_StrictlyAfterTheTimeouts(t *testing.T) {
	inWorld(t, func(w *world, _, n2, _ *node) {
		// The scan and the beat fall on the same instant: at exactly the timeout nothing
		// happens, at the next scan it does.
		key := w.register(specOf(address(1)))
		n2.beat(key)
		last := time.Now()
		for _, step := range []struct {
			after time.Duration
			want  string
		}{
			{14900 * time.Millisecond, "up"}, {15 * time.Second, "up"}, {15600 * time.Millisecond, "down"},
			{30 * time.Second, "down"}, {30600 * time.Millisecond, "gone"},
		} {
			time.Sleep(time.Until(last.Add(step.after)))
			if got := w.health(key); got != step.want {
				t.Errorf("%s after the last beat: %s, want %s", step.after, got, step.want)
			}
		}
	})
}

func TestExpiry_ScanAtExactlyTheTimeout(t *testing.T) {
	now := time.Duration(0)
	table := newTable(func() time.Duration { return now }, restored{}, func(registry.LeaseRef) {})
	table.complete()
	now = time.Hour // long after the take-over
	table.LeaseGranted(registry.Lease{
		LeaseRef: registry.LeaseRef{Number: 1, Grant: registry.Position{Index: 1}},
		Timeouts: registry.DefaultTimeouts(), Healthy: true,
	})
	for _, row := range []struct {
		age           time.Duration
		flips, evicts int
	}{
		{15 * time.Second, 0, 0}, {15*time.Second + 1, 1, 0}, {15*time.Second + time.Millisecond, 1, 0},
		{30 * time.Second, 1, 0}, {30*time.Second + 1, 0, 1},
	} {
		var f findings
		table.scan(now+row.age, &f)
		if len(f.flips) != row.flips || len(f.evicts) != row.evicts {
			t.Errorf("at %s: %d flips, %d evictions, want %d, %d", row.age, len(f.flips), len(f.evicts), row.flips, row.evicts)
		}
	}
}

func TestExpiry_OwnTimeouts(t *testing.T) {
	inWorld(t, func(w *world, _, _, _ *node) {
		fast := w.register(specOf(address(1), timeouts(1000, 3000, 6000)...))
		short := w.register(specOf(address(2), timeouts(1000, 8000, 2000)...)) // gone without an unhealthy phase
		time.Sleep(2700 * time.Millisecond)
		if got := w.health(short); got != "gone" {
			t.Errorf("delete timeout 2 s: %s after 2.7 s", got)
		}
		time.Sleep(time.Second)
		if got := w.health(fast); got != "down" {
			t.Errorf("beat timeout 3 s: %s after 3.7 s", got)
		}
		time.Sleep(3 * time.Second)
		if got := w.health(fast); got != "gone" {
			t.Errorf("delete timeout 6 s: %s after 6.7 s", got)
		}
		if n := w.count(isFlip(false)); n != 1 {
			t.Errorf("%d flips, want 1: the short one is evicted only", n)
		}
	})
}

func TestBeats_NeverEnterTheLog(t *testing.T) {
	inWorld(t, func(w *world, n1, n2, n3 *node) {
		w.registerMany(30)
		for range 120 { // ten minutes
			for i := range 30 {
				[]*node{n1, n2, n3}[i%3].beat(address(i).In(testService))
			}
			time.Sleep(5 * time.Second)
		}
		if got := w.commands(); len(got) != 0 {
			t.Errorf("%d log entries, first %#v", len(got), got[0])
		}
	})
}

func TestExpiry_WallClockJumpsChangeNothing(t *testing.T) {
	inWorld(t, func(w *world, n1, n2, _ *node) {
		key := w.register(specOf(address(1)))
		for _, jump := range []time.Duration{time.Hour, -2 * time.Hour} {
			n1.wall.Add(int64(jump))
			n2.wall.Add(int64(jump))
			for range 8 {
				time.Sleep(5 * time.Second)
				n2.beat(key)
			}
		}
		if n := len(w.commands()); n != 0 {
			t.Errorf("%d commands, want none", n)
		}
	})
}

func TestExpiry_ThousandAtOnceTakeFewEntries(t *testing.T) {
	inWorld(t, func(w *world, n1, _, _ *node) {
		w.registerMany(10_000)
		for range 7 {
			time.Sleep(5 * time.Second)
			for i := 1000; i < 10_000; i++ {
				n1.beat(address(i).In(testService))
			}
		}
		if flips, evicts := w.count(isFlip(false)), w.count(isEvict); flips != 2 || evicts != 2 {
			t.Errorf("%d flip and %d evict entries, want 2 and 2", flips, evicts)
		}
		if got := w.Service(testService).Len(); got != 9000 {
			t.Errorf("%d instances left, want 9000", got)
		}
	})
}

func TestExpiry_WaitsForProofOfLeadership(t *testing.T) {
	inWorld(t, func(w *world, _, _, _ *node) {
		key := w.register(specOf(address(1)))
		w.with(func() { w.verifyErr = registry.ErrNotLeader })
		time.Sleep(time.Minute)
		if got := w.health(key); got != "up" {
			t.Errorf("%s without proof of leadership", got)
		}
		w.with(func() { w.verifyErr = nil })
		time.Sleep(time.Second)
		if got := w.health(key); got != "gone" {
			t.Errorf("%s with proof, a minute after the last beat", got)
		}
	})
}

func TestExpiry_BeatDuringTheProofCancels(t *testing.T) {
	inWorld(t, func(w *world, n1, _, _ *node) {
		key := w.register(specOf(address(1)))
		w.with(func() { w.verifying = func() { n1.beat(key) } })
		time.Sleep(time.Minute)
		if n := len(w.commands()); n != 0 {
			t.Errorf("%d commands, want none: each found the lease renewed", n)
		}
	})
}

func TestExpiry_ReregistrationBeforeApplySurvives(t *testing.T) {
	inWorld(t, func(w *world, n1, _, _ *node) {
		spec := specOf(address(1))
		key := w.register(spec)
		w.with(func() {
			w.before = func(c registry.Command) {
				if isEvict(c) {
					w.register(spec)
				}
			}
		})
		time.Sleep(32 * time.Second)
		if got := w.health(key); got != "up" {
			t.Fatalf("%s, want up: it was registered again", got)
		}
		time.Sleep(10 * time.Second)
		n1.beat(key) // the claim of the old grant does not stick to the new one
	})
}

func TestFlip_BeatInFlightRecovers(t *testing.T) {
	inWorld(t, func(w *world, n1, n2, _ *node) {
		key := w.register(specOf(address(1)))
		w.with(func() {
			w.before = func(c registry.Command) {
				if isFlip(false)(c) {
					n2.beat(key)
				}
			}
		})
		time.Sleep(15700 * time.Millisecond)
		if w.count(isFlip(false)) != 1 {
			t.Fatal("no flip")
		}
		time.Sleep(300 * time.Millisecond)
		if got := w.health(key); got != "up" {
			t.Errorf("%s, want up: it beat while the flip was in flight", got)
		}
	})
}

func TestEvict_BeatInFlightWaitsForTheOutcome(t *testing.T) {
	inWorld(t, func(w *world, n1, n2, _ *node) {
		key := w.register(specOf(address(1)))
		var reply registry.BeatReply
		var err error
		done := make(chan struct{})
		w.with(func() {
			w.before = func(c registry.Command) {
				if isEvict(c) {
					go func() {
						defer close(done)
						reply, err = n2.keeper.Beat(context.Background(), registry.Beat{Key: key})
					}()
					time.Sleep(100 * time.Millisecond)
				}
			}
		})
		time.Sleep(31 * time.Second)
		<-done
		if err != nil || reply.Known {
			t.Errorf("beat during the eviction: %+v, %v, want unknown", reply, err)
		}
	})
}

func TestEvict_UnknownOutcomeStaysInFlight(t *testing.T) {
	for _, applied := range []bool{false, true} {
		inWorld(t, func(w *world, n1, _, _ *node) {
			key := w.register(specOf(address(1)))
			barrier := errors.New("barrier not through")
			w.with(func() {
				w.proposeErr = func(c registry.Command) (error, bool) {
					switch c.(type) {
					case registry.EvictBatch:
						return registry.ErrUncertain, applied
					case registry.NoOp:
						return barrier, false
					}
					return nil, false
				}
			})
			time.Sleep(33 * time.Second)
			began := time.Now()
			_, err := n1.keeper.Beat(context.Background(), registry.Beat{Key: key})
			if took := time.Since(began); err != nil || !applied && took < time.Second {
				t.Errorf("applied %v: beat answered after %s, %v", applied, took, err)
			}
			if n := w.count(isEvict); n > 1 {
				t.Errorf("proposed %d times with the outcome open", n)
			}
			w.with(func() { w.proposeErr = nil })
			time.Sleep(time.Second)
			if !applied {
				n1.beat(key)
			} else if got := w.health(key); got != "gone" {
				t.Errorf("%s, want gone", got)
			}
		})
	}
}

func TestRecovery_MergedAndOnce(t *testing.T) {
	inWorld(t, func(w *world, n1, n2, n3 *node) {
		w.registerMany(40)
		time.Sleep(20 * time.Second)
		for _, n := range []*node{n1, n2, n3} {
			for i := range 40 {
				n.beat(address(i).In(testService))
			}
		}
		time.Sleep(time.Second)
		if n := w.count(isFlip(true)); n != 1 {
			t.Errorf("%d recovery entries, want 1", n)
		}
		if got := n1.keeper.Status().Unhealthy; got != 0 {
			t.Errorf("%d unhealthy, want 0", got)
		}
	})
}

func TestSwitches_GateAndCountAsTakeOver(t *testing.T) {
	inWorld(t, func(w *world, _, _, _ *node) {
		key := w.register(specOf(address(1)))
		w.set(func(s *registry.Switches) { s.HealthCheckEnabled = false })
		time.Sleep(time.Minute)
		if got := w.health(key); got != "up" {
			t.Fatalf("%s with health checks off", got)
		}
		w.set(func(s *registry.Switches) { s.HealthCheckEnabled, s.ExpireInstance = true, false })
		time.Sleep(14 * time.Second)
		if got := w.health(key); got != "up" {
			t.Fatalf("%s, 14 s after health checks were switched on", got)
		}
		time.Sleep(time.Minute)
		if got := w.health(key); got != "down" {
			t.Fatalf("%s with expiry off", got)
		}
		w.set(func(s *registry.Switches) { s.ExpireInstance = true })
		time.Sleep(29 * time.Second)
		if got := w.health(key); got != "down" {
			t.Fatalf("%s, 29 s after expiry was switched on", got)
		}
		time.Sleep(3 * time.Second)
		if got := w.health(key); got != "gone" {
			t.Errorf("%s, 32 s after expiry was switched on", got)
		}
	})
}
