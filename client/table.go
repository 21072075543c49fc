package client

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// entry is a wanted instance, or one that is on its way out.
type entry struct {
	key Key
	// turn is held by who talks to the servers about the instance: a beat on its way is
	// awaited before the deregistration, and the other way round.
	turn chan struct{}

	// Guarded by the table's mutex.
	want       Registration
	registered bool // as wanted, as far as this client knows
	leaving    bool // to be deregistered
	gone       bool // no longer in the table
	light      bool // the next beat may go without the instance's data
	interval   time.Duration
	failures   int       // in a row
	alive      time.Time // when a server last knew the instance
	leftAt     time.Time // when it began to leave
	due        time.Time
	at         int // place in the heap, -1 outside
}

// table is what this client wants to be registered, and when to talk about it next.
type table struct {
	max int

	mu      sync.Mutex
	ended   bool // nothing more is wanted
	entries map[Key]*entry
	good    int // entries that are registered
	heap    dueHeap
	wake    chan struct{} // a hint to the scheduler that the head of the heap changed
}

func newTable(limit int) *table {
	return &table{max: limit, entries: map[Key]*entry{}, wake: make(chan struct{}, 1)}
}

// want puts a registration in, or other values for one that is there, and tells what was
// wanted before. The entry's turn is held when it returns.
func (t *table) want(ctx context.Context, r Registration) (*entry, before, error) {
	for {
		e, err := t.entry(r)
		if err != nil {
			return nil, before{}, err
		}
		if err := e.take(ctx); err != nil {
			t.mu.Lock()
			t.forgetIfFresh(e)
			t.mu.Unlock()
			return nil, before{}, err
		}
		t.mu.Lock()
		if t.ended {
			t.forgetFresh(e)
			t.mu.Unlock()
			e.release()
			return nil, before{}, ErrClosed
		}
		if e.gone { // it left while this waited
			t.mu.Unlock()
			e.release()
			continue
		}
		old := before{e.want, e.registered, e.leaving}
		t.heap.remove(e)
		t.setRegistered(e, false)
		e.want, e.leaving, e.light, e.failures = r, false, false, 0
		e.interval = r.interval()
		t.mu.Unlock()
		return e, old, nil
	}
}

// before is what was wanted of an entry until another registration came.
type before struct {
	want       Registration // without a service when nothing was
	registered bool
	leaving    bool
}

// refuse undoes want after a server refused the values: what was wanted before goes on.
func (t *table) refuse(e *entry, old before) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if old.want.Service == "" {
		t.remove(e)
		return
	}
	e.want, e.leaving, e.interval = old.want, old.leaving, old.want.interval()
	t.setRegistered(e, old.registered)
	if !old.registered || old.leaving || !old.want.Persistent {
		t.schedule(e, retryLeast)
	}
}

// end lets nothing more be wanted. What is wanted by now is in the table.
func (t *table) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ended = true
}

func (t *table) entry(r Registration) (*entry, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if e := t.entries[r.Key()]; e != nil {
		return e, nil
	}
	if len(t.entries) >= t.max {
		return nil, invalid("instances", fmt.Sprint(len(t.entries)+1), fmt.Sprintf("must not be above %d, see MaxInstances", t.max))
	}
	e := &entry{key: r.Key(), turn: make(chan struct{}, 1), at: -1}
	t.entries[e.key] = e
	return e, nil
}

// forgetIfFresh drops an entry that was made for a call that ended before it could say
// what it wants.
func (t *table) forgetIfFresh(e *entry) {
	if len(e.turn) == 0 {
		t.forgetFresh(e)
	}
}

func (t *table) forgetFresh(e *entry) {
	if e.want.Service == "" && !e.gone {
		t.remove(e)
	}
}

// leave marks an instance as unwanted; nil when it is not in the table.
func (t *table) leave(k Key) *entry {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.entries[k]
	if e == nil {
		return nil
	}
	t.heap.remove(e)
	e.leaving, e.leftAt, e.failures = true, time.Now(), 0
	return e
}

// remove takes an entry out; the mutex is held.
func (t *table) remove(e *entry) {
	t.heap.remove(e)
	t.setRegistered(e, false)
	e.gone = true
	delete(t.entries, e.key)
}

// schedule sets when the entry is looked at next; the mutex is held.
func (t *table) schedule(e *entry, after time.Duration) {
	if e.gone {
		return
	}
	e.due = time.Now().Add(after)
	t.heap.put(e)
	if t.heap[0] == e {
		select {
		case t.wake <- struct{}{}:
		default:
		}
	}
}

// setRegistered notes what servers know of the entry; the mutex is held.
func (t *table) setRegistered(e *entry, registered bool) {
	if e.registered == registered || e.gone {
		return
	}
	e.registered = registered
	if registered {
		t.good++
	} else {
		t.good--
	}
}

func (t *table) counts() (all, registered int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.entries), t.good
}

// take waits for the turn. One that is free is taken although ctx has ended.
func (e *entry) take(ctx context.Context) error {
	if e.tryTake() {
		return nil
	}
	select {
	case e.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (e *entry) tryTake() bool {
	select {
	case e.turn <- struct{}{}:
		return true
	default:
		return false
	}
}

func (e *entry) release() { <-e.turn }
