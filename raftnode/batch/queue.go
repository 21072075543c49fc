package batch

import (
	"sync"
	"time"

	"github.com/rollcall-io/rollcall/internal/wire"
	"github.com/rollcall-io/rollcall/registry"
)

// Class of an item: clients come first, background work gets its share.
type Class int

// The classes.
const (
	Client     Class = 0
	Background Class = 1

	classes = 2
	// share: while both classes wait, one batch in so many is of background work.
	share = 8
)

// Limits bound a queue, each class by itself, and its batches.
type Limits struct {
	Commands, Bytes           int // that may wait
	BatchCommands, BatchBytes int // of one batch
	// Deepen is how many commands must wait, at the least, for a batch to go out beside
	// others; see room. At 0 every batch goes at once.
	Deepen int
	// Gather makes a batch that follows another of many commands wait for more; see gather.
	Gather bool
}

// Queue holds items until they are taken. It is safe for concurrent use.
type Queue struct {
	limits Limits
	wake   chan struct{}

	mu       sync.Mutex
	lines    [classes]line
	keys     map[registry.InstanceKey]int // items queued or on their way, by key
	batches  int                          // of clients since the last one of background work
	underway int                          // batches taken whose end was not seen yet
	flying   int                          // items of those
	last     ending                       // of the batch that ended last
	closed   *registry.Error
}

type line struct {
	items []*Item
	bytes int
}

// NewQueue makes a queue for so many senders. It is open.
func NewQueue(limits Limits, senders int) *Queue {
	return &Queue{limits: limits, wake: make(chan struct{}, senders), keys: make(map[registry.InstanceKey]int)}
}

// Put queues the items of a group in their order. Those that find the queue full or
// closed get that as their outcome at once.
func (q *Queue) Put(g *Group, class Class) {
	var refused *registry.Error
	n := 0
	q.mu.Lock()
	refused = q.closed
	for ; n < len(g.Items) && refused == nil; n++ {
		refused = q.put(&g.Items[n], class)
		if refused != nil {
			break
		}
	}
	q.mu.Unlock()
	if n > 0 {
		q.signal()
	}
	for ; n < len(g.Items); n++ {
		g.Items[n].Complete(wire.Outcome{Err: refused})
	}
}

func (q *Queue) put(it *Item, class Class) *registry.Error {
	l := &q.lines[class]
	if len(l.items) >= q.limits.Commands || l.bytes+len(it.Encoded) > q.limits.Bytes {
		return registry.ErrOverloaded
	}
	l.items = append(l.items, it)
	l.bytes += len(it.Encoded)
	if it.HasKey {
		q.keys[it.Key]++
	}
	return nil
}

// signal wakes one sender. A full channel means that all have been woken already.
func (q *Queue) signal() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// take removes the next batch, at most one class of items. Items whose caller left or
// whose time is spent are dropped, the latter with an outcome. Nil when nothing waits.
func (q *Queue) take(now time.Time) []*Item {
	q.mu.Lock()
	defer q.mu.Unlock()
	for {
		if !q.room() {
			return nil // it goes when one that is on its way has ended
		}
		class := q.next()
		if class < 0 {
			return nil
		}
		if batch := q.cut(class, now); len(batch) > 0 {
			if q.waitingLocked() > 0 {
				q.signal() // the rest is for the next sender
			}
			q.underway++
			q.flying += len(batch)
			return batch
		}
	}
}

// room tells whether a batch may go now: beside others only one that carries as many
// items as they do together, or is full. A small one would cost its work on every node,
// stand in line behind them, and leave fewer to the next; a large one need not wait.
func (q *Queue) room() bool {
	if q.underway == 0 || q.limits.Deepen == 0 {
		return true
	}
	return q.waitingLocked() >= min(max(q.limits.Deepen, q.flying), q.limits.BatchCommands)
}

// ended notes the end of a batch that take gave.
func (q *Queue) ended(e ending) {
	q.mu.Lock()
	q.underway--
	q.flying -= e.items
	q.last = e
	q.mu.Unlock()
}

// next chooses the class of the next batch; -1 when nothing waits.
func (q *Queue) next() Class {
	clients, background := len(q.lines[Client].items), len(q.lines[Background].items)
	switch {
	case clients == 0 && background == 0:
		return -1
	case background > 0 && (clients == 0 || q.batches >= share-1):
		q.batches = 0
		return Background
	}
	if background > 0 {
		q.batches++
	}
	return Client
}

func (q *Queue) cut(class Class, now time.Time) []*Item {
	l := &q.lines[class]
	batch := make([]*Item, 0, min(len(l.items), q.limits.BatchCommands))
	bytes, n := 0, 0
	for ; n < len(l.items) && len(batch) < q.limits.BatchCommands; n++ {
		it := l.items[n]
		if len(batch) > 0 && bytes+len(it.Encoded) > q.limits.BatchBytes {
			break
		}
		l.bytes -= len(it.Encoded)
		if !it.state.CompareAndSwap(queued, sent) {
			q.untrack(it)
			it.Complete(wire.Outcome{Err: registry.ErrTimeout})
			continue
		}
		if !it.Deadline.IsZero() && now.After(it.Deadline) {
			q.untrack(it)
			it.Complete(wire.Outcome{Err: registry.ErrTimeout.Because("time was spent before the command was proposed")})
			continue
		}
		bytes += len(it.Encoded)
		batch = append(batch, it)
	}
	rest := copy(l.items, l.items[n:])
	clear(l.items[rest:])
	l.items = l.items[:rest]
	return batch
}

// Finish gives the items of a batch their outcomes, outcome(i) for the i-th. No
// command of their keys is then under way because of them.
func (q *Queue) Finish(items []*Item, outcome func(i int) wire.Outcome) {
	q.mu.Lock()
	for _, it := range items {
		q.untrack(it)
	}
	q.mu.Unlock()
	for i, it := range items {
		it.Complete(outcome(i))
	}
}

func (q *Queue) untrack(it *Item) {
	if !it.HasKey {
		return
	}
	if q.keys[it.Key]--; q.keys[it.Key] <= 0 {
		delete(q.keys, it.Key)
	}
}

// Busy tells whether a command of the key is queued or on its way.
func (q *Queue) Busy(key registry.InstanceKey) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.keys[key] > 0
}

// Len is the number of items of a class that wait.
func (q *Queue) Len(class Class) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.lines[class].items)
}

// Close refuses what waits and what comes with reason, until Open. What is on its way
// stays.
func (q *Queue) Close(reason *registry.Error) {
	q.mu.Lock()
	q.closed = reason
	var dropped []*Item
	for i := range q.lines {
		for _, it := range q.lines[i].items {
			q.untrack(it)
			dropped = append(dropped, it)
		}
		q.lines[i] = line{}
	}
	q.mu.Unlock()
	for _, it := range dropped {
		it.Complete(wire.Outcome{Err: reason})
	}
}

// Open lets items in again.
func (q *Queue) Open() {
	q.mu.Lock()
	q.closed = nil
	q.mu.Unlock()
}
