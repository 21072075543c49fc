package health

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollcall-io/rollcall/registry"
)

func TestCollector_NoLeaderGate(t *testing.T) {
	inWorld(t, func(w *world, _, n2, n3 *node) {
		key := w.register(specOf(address(1)))
		n2.beat(key)
		w.depose()
		began := time.Now()
		for time.Since(began) < 1900*time.Millisecond {
			n2.beat(key)
			time.Sleep(100 * time.Millisecond)
		}
		time.Sleep(1300 * time.Millisecond)
		if _, err := n2.light(key); !errors.Is(err, registry.ErrNoLeader) {
			t.Errorf("more than 3 s after the last answer: %v, want ErrNoLeader", err)
		}
		asked := time.Now()
		if _, err := n3.light(address(9).In(testService)); !errors.Is(err, registry.ErrNoLeader) {
			t.Errorf("unknown key without a leader: %v, want ErrNoLeader", err)
		}
		if took := time.Since(asked); took > 1100*time.Millisecond {
			t.Errorf("unknown key: refused after %s", took)
		}
		w.elect("n3")
		time.Sleep(200 * time.Millisecond)
		n2.beat(key)
		if got := n2.keeper.Status().KeptBeats; got != 0 {
			t.Errorf("%d beats still kept", got)
		}
	})
}

func TestCollector_UnknownOutcomeKeepsTheBeats(t *testing.T) {
	inWorld(t, func(w *world, n1, n2, _ *node) {
		key := w.register(specOf(address(1)))
		w.with(func() {
			w.sendErr = func(string) error {
				time.Sleep(sendTimeout)
				return registry.ErrUncertain
			}
		})
		time.Sleep(1100 * time.Millisecond) // any batch under way hangs now
		for range 10 {
			n2.beat(key) // answered within the gate although the leader hangs
		}
		if got := n2.keeper.Status().KeptBeats; got != 1 {
			t.Errorf("%d kept beats of one lease, want 1", got)
		}
		w.with(func() { w.sendErr = nil })
		time.Sleep(2 * time.Second)
		if got := n2.keeper.Status().KeptBeats; got != 0 {
			t.Errorf("%d kept beats, want 0", got)
		}
	})
}

func TestCollector_AnswerThatDoesNotFitIsRefused(t *testing.T) {
	inWorld(t, func(w *world, _, n2, _ *node) {
		key := w.register(specOf(address(1)))
		w.with(func() { w.unfit = true })
		n2.beat(key) // within the gate
		if got := n2.metric("rollcall_health_batches_failed_total", ""); got < 1 {
			t.Errorf("%v failed batches", got)
		}
	})
}

func TestKeeper_RefusesBeforeAndAfterRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		o := DefaultOptions()
		n := &node{world: w, id: "n1"}
		o.Node, o.State, o.Cluster = "n1", n, n
		k, err := New(o)
		if err != nil {
			t.Fatal(err)
		}
		beat := registry.Beat{Key: address(1).In(testService)}
		if _, err := k.Beat(t.Context(), beat); !errors.Is(err, registry.ErrNotReady) {
			t.Errorf("before Run: %v", err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		waiting := make(chan error)
		go func() { _, err := k.Beat(context.Background(), beat); waiting <- err }()
		go func() { _, err := k.Beat(context.Background(), beat); waiting <- err }()
		done := make(chan error)
		go func() { done <- k.Run(ctx) }()
		synctest.Wait()
		go func() { _, err := k.Beat(context.Background(), beat); waiting <- err }()
		synctest.Wait()
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
		for range 3 {
			if err := <-waiting; !errors.Is(err, registry.ErrNotReady) && !errors.Is(err, registry.ErrShuttingDown) {
				t.Errorf("beat that waited: %v", err)
			}
		}
		if _, err := k.Beat(t.Context(), beat); !errors.Is(err, registry.ErrShuttingDown) {
			t.Errorf("after Run: %v", err)
		}
		if err := k.Run(t.Context()); err == nil {
			t.Error("Run twice: no error")
		}
	})
}

// TestNodeThatHasNotMetALeaderYet_HoldsBeatsOfKnownInstances: right after its start a node
// answered the beats of instances it knew with "no leader", though one was there.
func TestNodeThatHasNotMetALeaderYet_HoldsBeatsOfKnownInstances(t *testing.T) {
	inWorld(t, func(w *world, _, _, _ *node) {
		key := w.register(specOf(address(1)))
		w.with(func() { w.sendErr = func(string) error { return registry.ErrUncertain } })
		time.AfterFunc(700*time.Millisecond, func() { w.with(func() { w.sendErr = nil }) })
		fresh := w.start("fresh")
		synctest.Wait()
		fresh.beat(key)
		if got := fresh.metric("rollcall_health_batches_failed_total", ""); got < 1 {
			t.Error("the first batch did not fail")
		}
		w.depose()
		alone, asked := w.start("alone"), time.Now()
		synctest.Wait()
		if _, err := alone.light(key); !errors.Is(err, registry.ErrNoLeader) {
			t.Errorf("no leader at all: %v, want ErrNoLeader", err)
		}
		if took := time.Since(asked); took < 900*time.Millisecond || took > 1100*time.Millisecond {
			t.Errorf("refused after %s, want a second", took)
		}
	})
}
