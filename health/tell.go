package health

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rollcall-io/rollcall/registry"
)

// tellPatience bounds one statement to the other nodes, and the wait of a beat for it.
const tellPatience = 250 * time.Millisecond

// renewals are the leases that were renewed while other nodes may note them as silent, and
// of which these have not all heard yet. A lease is in it once for each time that it is
// listed, which bounds it.
type renewals struct {
	// wake holds a token while refs may hold something.
	wake chan struct{}
	// waiting is the number of leases in unheard: nearly always none, and every beat asks.
	waiting atomic.Int32

	mu   sync.Mutex // taken under the table's, never the other way round
	refs []registry.LeaseRef
	// heard is closed when those in refs have been told of; unheard is the same for each
	// lease, those under way included.
	heard   chan struct{}
	unheard map[uint32]chan struct{}
}

func newRenewals() *renewals {
	return &renewals{
		wake: make(chan struct{}, 1), heard: make(chan struct{}), unheard: make(map[uint32]chan struct{}),
	}
}

// add has a lease told of. It never blocks; it is called under the table's lock.
func (r *renewals) add(ref registry.LeaseRef) {
	r.mu.Lock()
	r.refs = append(r.refs, ref)
	r.unheard[ref.Number] = r.heard
	r.waiting.Store(int32(len(r.unheard)))
	r.mu.Unlock()
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// take is what the next statement tells of, and what to close when it is heard.
func (r *renewals) take() ([]registry.LeaseRef, chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	refs, heard := r.refs, r.heard
	r.refs, r.heard = nil, make(chan struct{})
	return refs, heard
}

// done lets those go on who waited for a statement.
func (r *renewals) done(refs []registry.LeaseRef, heard chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, ref := range refs {
		if r.unheard[ref.Number] == heard {
			delete(r.unheard, ref.Number)
		}
	}
	r.waiting.Store(int32(len(r.unheard)))
	close(heard)
}

// wait blocks until the others have heard of a lease's renewal if that is under way, for
// tellPatience at most. The beat of a lease that they note as silent is so never answered
// while only a leader who may die knows of it.
func (r *renewals) wait(ctx context.Context, number uint32) {
	if r.waiting.Load() == 0 {
		return
	}
	r.mu.Lock()
	heard := r.unheard[number]
	r.mu.Unlock()
	if heard == nil {
		return
	}
	timer := time.NewTimer(tellPatience)
	defer timer.Stop()
	select {
	case <-heard:
	case <-timer.C:
	case <-ctx.Done():
	}
}

// tellLoop tells the other nodes at once. One statement is under way at a time; what comes
// meanwhile goes with the next.
func (l *lead) tellLoop(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.renewals.wake:
		}
		refs, heard := l.renewals.take()
		for rest := refs; len(rest) > 0 && ctx.Err() == nil; {
			n := min(len(rest), maxSilent)
			telling, cancel := context.WithTimeout(ctx, tellPatience)
			l.opts.Peers.TellRenewed(telling, rest[:n])
			cancel()
			rest = rest[n:]
		}
		l.renewals.done(refs, heard)
	}
}
