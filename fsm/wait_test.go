package fsm

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/rollcall-io/rollcall/registry"
)

func TestWaitApplied_WakesThoseDue(t *testing.T) {
	n := newNode(t)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	const entries, each = 50, 20
	var group sync.WaitGroup
	for i := range uint64(entries) {
		for range each {
			index := n.index + 1 + i
			group.Go(func() {
				if err := n.WaitApplied(ctx, index); err != nil {
					t.Error(err)
				}
				if n.Applied() < index {
					t.Errorf("woken for %d at %d", index, n.Applied())
				}
			})
		}
	}
	for range entries {
		n.ok(registry.NoOp{})
	}
	group.Wait()
	if len(n.waiters.queue)+len(n.waiters.byIndex) != 0 {
		t.Errorf("left: %d groups", len(n.waiters.queue))
	}
	if err := n.WaitApplied(ctx, 1); err != nil {
		t.Error(err)
	}
}

func TestWaitApplied_EndsWithItsContext(t *testing.T) {
	n := newNode(t)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	for _, index := range []uint64{12, 14, 14} {
		go func() { done <- n.WaitApplied(ctx, index) }()
	}
	await(t, "three wait", func() bool {
		n.waiters.mu.Lock()
		defer n.waiters.mu.Unlock()
		waiting := 0
		for _, g := range n.waiters.queue {
			waiting += g.size
		}
		return waiting == 3
	})
	n.ok(registry.NoOp{})
	n.ok(registry.NoOp{})
	if err := <-done; err != nil {
		t.Errorf("index 12 is applied: %v", err)
	}
	cancel()
	for range 2 {
		if err := <-done; !errors.Is(err, registry.ErrTimeout) {
			t.Errorf("%v, want a timeout", err)
		}
	}
	if len(n.waiters.queue)+len(n.waiters.byIndex) != 0 {
		t.Errorf("left: %d groups", len(n.waiters.queue))
	}
}

func BenchmarkWaitApplied(b *testing.B) {
	f, s := newFSM(b, Options{}), newScript(b)
	const callers = 256
	b.ReportAllocs()
	for b.Loop() {
		l := s.entry(registry.NoOp{})
		var group sync.WaitGroup
		for range callers {
			group.Go(func() {
				if err := f.WaitApplied(b.Context(), l.Index); err != nil {
					b.Error(err)
				}
			})
		}
		f.Apply(l)
		group.Wait()
	}
}
