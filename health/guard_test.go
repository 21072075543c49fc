package health

import (
	"sync"
	"testing"
	"time"

	"github.com/rollcall-io/rollcall/registry"
)

func TestPause_BeatingInstancesStay(t *testing.T) {
	inWorld(t, func(w *world, n1, n2, _ *node) {
		key := w.register(specOf(address(1)))
		n2.beat(key)
		time.Sleep(3 * time.Second)
		n1.pause(time.Minute)
		time.Sleep(4 * time.Second) // the beat comes only now
		n2.beat(key)
		for range 10 {
			time.Sleep(5 * time.Second)
			n2.beat(key)
		}
		if n := len(w.commands()); n != 0 {
			t.Errorf("%d commands, want none", n)
		}
		if got := n1.keeper.Status().Compensated; got < time.Minute || got > time.Minute+time.Second {
			t.Errorf("compensated %s for a pause of a minute", got)
		}
		if got := n1.metric("rollcall_health_pause_compensation_seconds_total", ""); got < 60 || got > 61 {
			t.Errorf("metric says %v s", got)
		}
	})
}

func TestPause_BeatBeforeItsDiscoveryGrantsNoMore(t *testing.T) {
	inWorld(t, func(w *world, n1, _, _ *node) {
		key := w.register(specOf(address(1)))
		time.Sleep(3100 * time.Millisecond)
		n1.pause(time.Minute)
		n1.beat(key) // stamped with the pause in it
		last := time.Now()
		time.Sleep(14 * time.Second)
		if got := w.health(key); got != "up" {
			t.Fatalf("%s, %s after the last beat", got, time.Since(last))
		}
		time.Sleep(3 * time.Second)
		if got := w.health(key); got != "down" {
			t.Errorf("%s, %s after the last beat", got, time.Since(last))
		}
	})
}

func TestPause_BetweenScanAndProposalMakesNobodyOlder(t *testing.T) {
	inWorld(t, func(w *world, n1, _, _ *node) {
		dead := w.register(specOf(address(1)))
		time.Sleep(10 * time.Second)
		alive := w.register(specOf(address(2)))
		var pause sync.Once
		w.with(func() { w.verifying = func() { pause.Do(func() { n1.pause(time.Minute) }) } })
		time.Sleep(6 * time.Second)
		if got := w.health(dead); got != "down" {
			t.Errorf("the dead one is %s", got)
		}
		if got := w.health(alive); got != "up" || n1.now.Load() == 0 {
			t.Errorf("the one beating 6 s ago is %s", got)
		}
	})
}

func TestStorm_EvictionsWaitOnceFlipsDoNot(t *testing.T) {
	inWorld(t, func(w *world, n1, _, _ *node) {
		const all, dead = 600, 120
		w.registerMany(all)
		living := func(seconds int) {
			for range seconds / 5 {
				time.Sleep(5 * time.Second)
				for i := dead; i < all; i++ {
					n1.beat(address(i).In(testService))
				}
			}
		}
		living(20)
		if got := w.health(address(0).In(testService)); got != "down" {
			t.Errorf("%s after 20 s: flips do not wait", got)
		}
		living(35)
		if got := w.Service(testService).Len(); got != all {
			t.Errorf("%d instances after 55 s, want all %d", got, all)
		}
		if s := n1.keeper.Status(); !s.Storm || s.StormHeld != dead {
			t.Errorf("status %+v, want a storm that holds %d", s, dead)
		}
		living(10)
		if got := w.Service(testService).Len(); got != all-dead {
			t.Errorf("%d instances after 65 s, want %d", got, all-dead)
		}
		living(5)
		if s := n1.keeper.Status(); s.Storm || s.StormHeld != 0 {
			t.Errorf("status %+v, want no storm", s)
		}
		if got := n1.metric("rollcall_health_storms_total", ""); got != 1 {
			t.Errorf("%v storms counted, want 1", got)
		}
	})
}

func TestStorm_HoldEndsWithABeat(t *testing.T) {
	inWorld(t, func(w *world, n1, _, _ *node) {
		w.registerMany(120)
		key := address(0).In(testService)
		time.Sleep(40 * time.Second)
		n1.beat(key)
		time.Sleep(29 * time.Second)
		if got := w.health(key); got != "down" {
			t.Fatalf("%s", got)
		}
		time.Sleep(2 * time.Second)
		if got := w.health(key); got != "gone" {
			t.Errorf("%s: the storm is over and its one more timeout was for the time before", got)
		}
	})
}

func TestStorm_FewOrSmallShareIsNone(t *testing.T) {
	for _, row := range []struct{ all, dead int }{{99, 99}, {800, 110}} {
		inWorld(t, func(w *world, n1, _, _ *node) {
			w.registerMany(row.all)
			for range 7 {
				time.Sleep(5 * time.Second)
				for i := row.dead; i < row.all; i++ {
					n1.beat(address(i).In(testService))
				}
			}
			if got := w.Service(testService).Len(); got != row.all-row.dead {
				t.Errorf("%d of %d dead: %d left after 35 s", row.dead, row.all, got)
			}
		})
	}
}

func TestLease_LogRefusalIsTriedAgain(t *testing.T) {
	inWorld(t, func(w *world, n1, _, _ *node) {
		key := w.register(specOf(address(1)))
		w.with(func() { w.proposeErr = func(registry.Command) (error, bool) { return registry.ErrOverloaded, false } })
		time.Sleep(20 * time.Second)
		n1.beat(key) // nothing is in flight: no waiting
		w.with(func() { w.proposeErr = nil })
		time.Sleep(16 * time.Second)
		if got := w.health(key); got != "down" {
			t.Errorf("%s", got)
		}
	})
}
