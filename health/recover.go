package health

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/rollcall-io/rollcall/registry"
)

// recoverMerge is how long recoveries are gathered into one command.
const recoverMerge = 200 * time.Millisecond

// leaseQueue holds leases that something is to be proposed or told about. Each is in it at
// most once, which a flag of the lease sees to and which also bounds it.
type leaseQueue struct {
	// wake holds a token while the queue may hold something.
	wake chan struct{}

	mu   sync.Mutex // taken under the table's, never the other way round
	refs []registry.LeaseRef
}

func newLeaseQueue() *leaseQueue { return &leaseQueue{wake: make(chan struct{}, 1)} }

// add queues a lease. It never blocks; it is called under the table's lock.
func (q *leaseQueue) add(ref registry.LeaseRef) {
	q.mu.Lock()
	q.refs = append(q.refs, ref)
	q.mu.Unlock()
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

func (q *leaseQueue) take() []registry.LeaseRef {
	q.mu.Lock()
	defer q.mu.Unlock()
	refs := q.refs
	q.refs = nil
	return refs
}

// recoverLoop proposes the health of instances that beat again.
func (l *lead) recoverLoop(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.recoveries.wake:
		}
		if !sleep(ctx, recoverMerge) {
			return
		}
		for chunk := range slices.Chunk(l.recoveries.take(), batchItems) {
			if err := l.recoverBatch(ctx, chunk); err != nil && ctx.Err() == nil {
				l.metrics.dropped.Inc()
				l.log.Warn("recoveries left to the next beats", "term", l.term, "err", err)
			}
		}
	}
}

func (l *lead) recoverBatch(ctx context.Context, refs []registry.LeaseRef) error {
	items := l.table.recoverable(refs)
	if len(items) == 0 {
		return nil
	}
	res, err := l.propose(ctx, registry.HealthBatch{Term: l.term, Items: items})
	if err != nil && !settled(err) {
		return err
	}
	l.table.settle(refs, flagRecovering)
	if err != nil {
		return err
	}
	l.metrics.flipsUp.Add(float64(len(items) - res.Skipped))
	l.metrics.skipped.Add(float64(res.Skipped))
	l.log.Info("instances healthy again", "count", len(items)-res.Skipped, "first", l.nameOf(items[0].Lease))
	return nil
}

// recoverable is what of refs is still unhealthy and waits for its recovery.
func (t *table) recoverable(refs []registry.LeaseRef) []registry.HealthItem {
	t.mu.Lock()
	defer t.mu.Unlock()
	items := make([]registry.HealthItem, 0, len(refs))
	for _, ref := range refs {
		s := t.slot(ref.Number)
		if !s.holds(ref.Grant) {
			continue
		}
		word := s.word.Load()
		const all = flagUsed | flagHealthy | flagRecovering | flagEvicting
		if word&all == flagUsed|flagRecovering {
			items = append(items, registry.HealthItem{Lease: ref.Number, Grant: ref.Grant, Healthy: true})
		} else {
			s.word.Store(word &^ flagRecovering)
		}
	}
	return items
}
