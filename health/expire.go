package health

import (
	"context"
	"slices"
	"time"

	"github.com/rollcall-io/rollcall/registry"
)

// batchItems is how many flips or evictions go into one command.
const batchItems = 512

// expireLoop proposes what the scanner found due, flips before evictions, each batch after
// a proof of leadership. One batch is in flight at a time, and the proposer gives
// background work its share of the log: however many are due, clients are not pushed out.
func (l *lead) expireLoop(ctx context.Context) {
	failing := false
	for {
		select {
		case <-ctx.Done():
			return
		case d := <-l.due:
			err := l.expire(ctx, d)
			if err != nil && ctx.Err() == nil {
				l.metrics.dropped.Inc()
				if !failing { // once, not at every scan for as long as it lasts
					l.log.Warn("expiry put off until leadership is proven and the log takes it", "term", l.term, "err", err)
				}
			}
			failing = err != nil
		}
	}
}

func (l *lead) expire(ctx context.Context, d dueLeases) error {
	for chunk := range slices.Chunk(d.flips, batchItems) {
		if err := l.flip(ctx, chunk, d.at); err != nil {
			return err
		}
	}
	for chunk := range slices.Chunk(d.evicts, batchItems) {
		if err := l.evict(ctx, chunk, d.at); err != nil {
			return err
		}
	}
	return nil
}

func (l *lead) flip(ctx context.Context, numbers []uint32, at time.Duration) error {
	if err := l.verify(ctx); err != nil {
		return err
	}
	items, seen := l.table.claimFlips(numbers, at)
	if len(items) == 0 {
		return nil
	}
	res, err := l.propose(ctx, registry.HealthBatch{Term: l.term, Items: items})
	if err != nil && !settled(err) {
		return err // the term is over, and the table with it
	}
	l.table.settleFlips(items, seen)
	if err != nil {
		return err
	}
	l.metrics.flipsDown.Add(float64(len(items) - res.Skipped))
	l.metrics.skipped.Add(float64(res.Skipped))
	l.log.Info("instances unhealthy", "count", len(items)-res.Skipped, "first", l.nameOf(items[0].Lease))
	return nil
}

func (l *lead) evict(ctx context.Context, numbers []uint32, at time.Duration) error {
	if err := l.verify(ctx); err != nil {
		return err
	}
	items := l.table.claimEvicts(numbers, at)
	if len(items) == 0 {
		return nil
	}
	first := l.nameOf(items[0].Number)
	res, err := l.propose(ctx, registry.EvictBatch{Term: l.term, Items: items})
	if err != nil && !settled(err) {
		return err
	}
	l.table.settle(items, flagEvicting)
	if err != nil {
		return err
	}
	l.metrics.evictions.Add(float64(len(items) - res.Skipped))
	l.metrics.skipped.Add(float64(res.Skipped))
	l.log.Info("instances evicted", "count", len(items)-res.Skipped, "first", first)
	return nil
}

// nameOf names the instance behind a lease, for logs.
func (l *lead) nameOf(number uint32) string {
	lease, found := l.state.Lease(number)
	if !found {
		return "gone"
	}
	return lease.Key.String()
}
