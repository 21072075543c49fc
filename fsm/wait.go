package fsm

import (
	"container/heap"
	"context"
	"fmt"
	"sync"

	"github.com/rollcall-io/rollcall/registry"
)

// waiters are those that wait for an index to be applied, one group for each index: the
// callers of one packed entry share a channel and are woken together.
type waiters struct {
	mu      sync.Mutex
	byIndex map[uint64]*waitGroup
	queue   waitQueue
}

type waitGroup struct {
	index  uint64
	doneCh chan struct{} // closed when the index is applied
	size   int
	at     int // place in the queue
}

// waitQueue is a min-heap by index.
type waitQueue []*waitGroup

func (q waitQueue) Len() int           { return len(q) }
func (q waitQueue) Less(i, j int) bool { return q[i].index < q[j].index }
func (q waitQueue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].at, q[j].at = i, j
}
func (q *waitQueue) Push(x any) {
	g := x.(*waitGroup)
	g.at = len(*q)
	*q = append(*q, g)
}
func (q *waitQueue) Pop() any {
	last := (*q)[len(*q)-1]
	(*q)[len(*q)-1] = nil
	*q = (*q)[:len(*q)-1]
	return last
}

// join makes the caller one of those that wait for index, unless reached says, under
// the lock that wake takes after the index moved, that there is nothing to wait for.
func (w *waiters) join(index uint64, reached func() bool) *waitGroup {
	w.mu.Lock()
	defer w.mu.Unlock()
	if reached() {
		return nil
	}
	g := w.byIndex[index]
	if g == nil {
		if w.byIndex == nil {
			w.byIndex = make(map[uint64]*waitGroup)
		}
		g = &waitGroup{index: index, doneCh: make(chan struct{})}
		w.byIndex[index] = g
		heap.Push(&w.queue, g)
	}
	g.size++
	return g
}

// leave takes back a join whose wait ended by its deadline.
func (w *waiters) leave(g *waitGroup) {
	w.mu.Lock()
	defer w.mu.Unlock()
	g.size--
	if g.size == 0 && w.byIndex[g.index] == g {
		delete(w.byIndex, g.index)
		heap.Remove(&w.queue, g.at)
	}
}

// wake ends the waits for applied and whatever is below it.
func (w *waiters) wake(applied uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for len(w.queue) > 0 && w.queue[0].index <= applied {
		g := heap.Pop(&w.queue).(*waitGroup)
		delete(w.byIndex, g.index)
		close(g.doneCh)
	}
}

// Applied is the index of the last entry applied, command or configuration. A read that
// follows sees the state of that index or a later one.
func (f *FSM) Applied() uint64 { return f.applied.Load() }

// WaitApplied blocks until index is applied. When ctx ends before, the error is an
// ErrTimeout.
func (f *FSM) WaitApplied(ctx context.Context, index uint64) error {
	if f.applied.Load() >= index {
		return nil
	}
	g := f.waiters.join(index, func() bool { return f.applied.Load() >= index })
	if g == nil {
		return nil
	}
	select {
	case <-g.doneCh:
		return nil
	case <-ctx.Done():
		f.waiters.leave(g)
		return fmt.Errorf("wait for index %d, applied is %d: %w", index, f.applied.Load(), registry.ErrTimeout)
	}
}
