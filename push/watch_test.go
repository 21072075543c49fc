package push

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/rollcall-io/rollcall/registry"
)

// nextOf waits for a batch, or fails the test.
func nextOf(t *testing.T, s *Stream) registry.WatchBatch {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	b, err := s.Next(ctx)
	if err != nil {
		t.Fatal(err)
	}
	s.Sent(b)
	return b
}

func open(t *testing.T, l *log, w registry.Watch) *Stream {
	t.Helper()
	s, err := l.watches.Watch(w)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func TestWatch_FullStateFirstThenEvents(t *testing.T) {
	l := newLog(t, nil)
	l.entry(change{"orders", "10.0.0.1", 1})
	s := open(t, l, one("orders"))
	if b := nextOf(t, s); !b.Reset || b.Index != 1 || len(b.Services) != 1 || b.Services[0].Len() != 1 {
		t.Fatalf("%+v", b)
	}
	l.entry(change{"other", "10.0.0.1", 1})
	index := l.entry(change{"orders", "10.0.0.2", 1}, change{"orders", "10.0.0.1", 2})
	b := nextOf(t, s)
	if b.Reset || b.Index != index || len(b.Events) != 1 || b.Since.IsZero() ||
		!slices.Equal(reasons(b.Events[0]), []string{"registered", "updated"}) {
		t.Errorf("%+v", b)
	}
}

func TestWatch_ResumesFromTheRing(t *testing.T) {
	l := newLog(t, nil)
	from := l.entry(change{"orders", "10.0.0.1", 1})
	l.entry(change{"orders", "10.0.0.2", 1})
	last := l.entry(change{"orders", "10.0.0.2", 0}, change{"orders", "10.0.0.3", 1})
	w := one("orders")
	w.After, w.Resume = from, true
	b := nextOf(t, open(t, l, w))
	if b.Reset || b.Index != last || len(b.Events) != 1 || len(b.Events[0].Changes) != 1 || b.Events[0].Changes[0].After.IP != "10.0.0.3" {
		t.Errorf("%+v", b)
	}
	w.After = last
	s := open(t, l, w)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if b, err := s.Next(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("told %+v, %v to who has everything", b, err)
	}
	if s.Index() != last {
		t.Errorf("index %d", s.Index())
	}
}

func TestWatch_QuietWatcherMovesOn(t *testing.T) {
	l := newLog(t, nil)
	s := open(t, l, one("orders"))
	nextOf(t, s)
	last := l.entry(change{"other", "10.0.0.1", 1})
	until(t, "the index of other services' events", func() bool { return s.Index() == last })
}

func TestWatch_FullStateWhenTheRingDoesNotReach(t *testing.T) {
	l := newLog(t, func(o *WatchOptions) { o.RingEvents = 10 })
	from := l.entry(change{"orders", "10.0.0.1", 1})
	for i := range 20 {
		l.entry(change{"orders", "10.0.0.1", float64(i + 2)}, change{"other", "10.0.0.1", float64(i + 2)})
	}
	if n, _ := l.watches.ring.size(); n > 10 {
		t.Errorf("%d events are kept", n)
	}
	w := one("orders")
	w.After, w.Resume = from, true
	if b := nextOf(t, open(t, l, w)); !b.Reset || b.Services[0].Instances()[0].Weight != 21 {
		t.Errorf("%+v", b)
	}
}

func TestRing_IsBoundedByBytesAndForgetsWholeEntries(t *testing.T) {
	r := newRing(1000, 20_000)
	for i := range uint64(100) {
		in := instance("DEFAULT", "10.0.0.1", 80)
		in.Metadata = registry.Metadata{{Key: "k", Value: strings.Repeat("v", 500)}}
		e := registry.ServiceEvent{Service: key("s"), Index: i + 1, Changes: []registry.InstanceEvent{{After: in}}}
		r.add(time.Now(), []registry.ServiceEvent{e, e, e})
		n, bytes := r.size()
		if bytes > 20_000 || n%3 != 0 {
			t.Fatalf("%d events of %d bytes", n, bytes)
		}
	}
	if n, _ := r.size(); n < 9 || r.floor != 100-uint64(n/3) {
		t.Errorf("%d events above %d", n, r.floor)
	}
	w := one("s")
	w.After = r.floor
	if got, upTo, ok := r.after(w); !ok || upTo != 100 || len(got) != len(r.events) {
		t.Errorf("%d events up to %d, %t", len(got), upTo, ok)
	}
	w.After--
	if _, _, ok := r.after(w); ok {
		t.Error("the ring claims to reach below its floor")
	}
}

func TestWatch_JumpOfTheStateIsAFullState(t *testing.T) {
	l := newLog(t, nil)
	s := open(t, l, many(""))
	nextOf(t, s)
	l.jump(change{"a", "10.0.0.1", 1}, change{"b", "10.0.0.1", 1})
	b := nextOf(t, s)
	for !b.Reset || len(b.Services) != 2 || b.Index != 100 {
		t.Fatalf("%+v", b)
	}
	w := many("")
	w.After, w.Resume = 50, true
	if b := nextOf(t, open(t, l, w)); !b.Reset {
		t.Errorf("%+v", b)
	}
}

func TestWatch_SlowStreamIsGivenTheFullState(t *testing.T) {
	l := newLog(t, func(o *WatchOptions) {
		o.MaxPending, o.MinMerge, o.MaxMerge = 10, time.Millisecond, time.Millisecond
	})
	slow, quick := open(t, l, one("orders")), open(t, l, one("orders"))
	nextOf(t, slow)
	f := newFollower(t, one("orders"))
	f.take(nextOf(t, quick))
	for i := range 50 {
		l.entry(change{"orders", "10.0.0.1", float64(i + 1)})
		for f.state["orders 10.0.0.1"] != float64(i+1) {
			f.take(nextOf(t, quick))
		}
	}
	if b := nextOf(t, slow); !b.Reset || b.Services[0].Instances()[0].Weight != 50 {
		t.Errorf("%+v", b)
	}
	if n := testutil.ToFloat64(l.watches.metrics.overruns); n != 1 {
		t.Errorf("%v overruns counted", n)
	}
}

func TestWatch_BurstIsMerged(t *testing.T) {
	l := newLog(t, nil)
	s := open(t, l, one("orders"))
	f := newFollower(t, one("orders"))
	f.take(nextOf(t, s))
	for i := range 1000 {
		l.entry(change{"orders", fmt.Sprintf("10.0.0.%d", i%10), float64(1 + i)})
	}
	for f.state["orders 10.0.0.9"] != 1000 {
		f.take(nextOf(t, s))
	}
	if f.batches > 20 {
		t.Errorf("%d batches for 1000 changes in a row", f.batches)
	}
}

func TestWatches_AreBoundedAndEndWithClose(t *testing.T) {
	l := newLog(t, func(o *WatchOptions) { o.MaxWatches = 2 })
	a, b := open(t, l, one("a")), open(t, l, many(""))
	nextOf(t, a)
	if _, err := l.watches.Watch(one("c")); !errors.Is(err, registry.ErrOverloaded) {
		t.Errorf("third: %v", err)
	}
	b.Close()
	b.Close()
	open(t, l, one("c"))
	l.watches.Close()
	if _, err := a.Next(t.Context()); !errors.Is(err, registry.ErrShuttingDown) {
		t.Errorf("after Close: %v", err)
	}
	if _, err := l.watches.Watch(one("d")); !errors.Is(err, registry.ErrShuttingDown) {
		t.Errorf("opened after Close: %v", err)
	}
	if _, err := NewWatches(WatchOptions{}); err == nil {
		t.Error("no State was accepted")
	}
}

// Watchers that leave and come back at random during 10,000 entries end on the state,
// and every step on the way follows from the one before.
func TestWatch_ReconnectingWatchersRebuildTheState(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	l := newLog(t, func(o *WatchOptions) {
		o.RingEvents, o.MaxPending = 300, 200
		o.MinMerge, o.MaxMerge = time.Millisecond, 5*time.Millisecond
	})
	done := make(chan struct{})
	var group sync.WaitGroup
	var followers []*follower
	for i, w := range []registry.Watch{one("s0"), one("s1"), many("s"), many("s1"), many("none"), {Namespace: "public", Group: registry.AnyGroup, Prefix: true}} {
		f := newFollower(t, w)
		followers = append(followers, f)
		group.Go(func() { f.follow(l, rand.New(rand.NewPCG(seed, uint64(i+1))), done) })
	}
	random := rand.New(rand.NewPCG(seed, 0))
	for i := range 10_000 {
		if i%2500 == 2499 {
			l.jump(randomChanges(random, 20)...)
		} else {
			l.entry(randomChanges(random, 20)...)
		}
		if i%50 == 0 {
			select { // give the followers a chance to keep up
			case <-time.After(time.Millisecond):
			case <-t.Context().Done():
			}
		}
	}
	close(done)
	group.Wait()
	for _, f := range followers {
		t.Logf("%+v: %d batches, %d full states", f.watch, f.batches, f.resets)
	}
	if n := l.watches.streams(); n != 0 {
		t.Errorf("%d streams are left", n)
	}
}

// Applying a merged event to the state before gives the state after.
func TestMerge_Law(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 7))
	for round := range 300 {
		l := newLog(t, nil)
		for range 3 {
			l.entry(randomChanges(random, 3)...)
		}
		f := newFollower(t, many("s"))
		w := many("s")
		before, index := l.contents(w)
		f.state, f.watch.After, f.watch.Resume = before, index, true
		for range 1 + random.IntN(8) {
			l.entry(randomChanges(random, 3)...)
		}
		w.After = index
		events, upTo, ok := l.watches.ring.after(w)
		if !ok {
			t.Fatal("ring does not reach")
		}
		merged, _ := merge(events)
		if len(merged) > 0 {
			f.take(registry.WatchBatch{Index: upTo, Events: merged})
		}
		after, _ := l.contents(w)
		if fmt.Sprint(f.state) != fmt.Sprint(after) {
			t.Fatalf("round %d: %v, want %v", round, f.state, after)
		}
	}
}
