package push

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/rollcall-io/rollcall/registry"
)

// Stream is one watch. Next and Close are for one goroutine.
type Stream struct {
	w      *Watches
	watch  registry.Watch
	wakeCh chan struct{} // holds one
	pace   pace
	closed sync.Once
	first  []kept // what the ring still had of the past

	// The rest is guarded by the Watches' lock.
	waiting []*kept
	lost    bool   // the full state is due
	seen    uint64 // up to this index the watcher has everything
}

// resume takes what the watcher missed out of the ring; false when it is not all there.
func (s *Stream) resume() bool {
	events, upTo, ok := s.w.ring.after(s.watch)
	if !ok {
		return false
	}
	s.first = events
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	s.see(upTo)
	if len(events) > 0 {
		s.wake()
	}
	return true
}

// see moves seen up and drops what waits below it. It needs the lock.
func (s *Stream) see(index uint64) {
	s.seen = max(s.seen, index)
	s.waiting = slices.DeleteFunc(s.waiting, func(k *kept) bool { return k.Index <= s.seen })
}

// give needs the lock.
func (s *Stream) give(e *kept) {
	if s.lost || e.Index <= s.seen {
		return
	}
	if len(s.waiting) >= s.w.opts.MaxPending {
		s.w.metrics.overruns.Inc()
		s.lose()
		return
	}
	s.waiting = append(s.waiting, e)
	s.wake()
}

// lose makes the full state due. It needs the lock.
func (s *Stream) lose() {
	s.lost, s.waiting = true, nil
	s.wake()
}

func (s *Stream) markLost() {
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	s.lose()
}

func (s *Stream) wake() {
	select {
	case s.wakeCh <- struct{}{}:
	default:
	}
}

// Next waits for something to tell and returns it, merged: what the watcher missed before
// it came, the full state, or new events. While changes go on it waits for the end of
// the merge window. Errors: that of ctx, registry.ErrShuttingDown.
func (s *Stream) Next(ctx context.Context) (registry.WatchBatch, error) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		batch, wait, ok := s.take()
		if ok {
			return batch, nil
		}
		timer.Reset(wait)
		select {
		case <-s.wakeCh:
		case <-timer.C:
		case <-s.w.doneCh:
			return registry.WatchBatch{}, registry.ErrShuttingDown
		case <-ctx.Done():
			return registry.WatchBatch{}, ctx.Err()
		}
	}
}

// take is the next batch, or for how long there is none.
func (s *Stream) take() (batch registry.WatchBatch, wait time.Duration, ok bool) {
	now := time.Now()
	if s.first != nil {
		events := s.first
		s.first = nil
		if batch, ok = s.batch(events, s.position()); ok {
			s.pace.sent(now, len(events))
			return batch, 0, true
		}
	}
	events, lost, index, wait := s.takeWaiting(now)
	if lost {
		s.pace.sent(now, 1)
		return s.full(), 0, true
	}
	if batch, ok = s.batch(events, index); ok {
		s.pace.sent(now, len(events))
		return batch, 0, true
	}
	return batch, wait, false
}

// takeWaiting takes what waits when the merge window is over, else says for how long.
func (s *Stream) takeWaiting(now time.Time) (events []kept, lost bool, index uint64, wait time.Duration) {
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	if !s.lost && len(s.waiting) == 0 {
		return nil, false, s.seen, time.Hour
	}
	if wait := s.pace.due(now).Sub(now); wait > 0 {
		return nil, false, s.seen, wait
	}
	if s.lost {
		return nil, true, 0, 0
	}
	events = make([]kept, len(s.waiting))
	for i, k := range s.waiting {
		events[i] = *k
	}
	s.waiting = nil
	s.seen = events[len(events)-1].Index
	return events, false, s.seen, time.Hour
}

// batch merges events; false when nothing is left of them.
func (s *Stream) batch(events []kept, index uint64) (registry.WatchBatch, bool) {
	if len(events) == 0 {
		return registry.WatchBatch{}, false
	}
	merged, since := merge(events)
	return registry.WatchBatch{Index: index, Events: merged, Since: since}, len(merged) > 0
}

// full is the full state of what is watched. Everything after its index comes as events:
// the mark goes before the look, so that a jump in between sets it again.
func (s *Stream) full() registry.WatchBatch {
	s.w.mu.Lock()
	s.lost = false
	s.w.mu.Unlock()
	batch := registry.WatchBatch{Reset: true, Since: time.Now()}
	if key, one := s.watch.Key(); one {
		svc, index := s.w.opts.State.ServiceAt(key)
		if batch.Index = index; svc != nil {
			batch.Services = []*registry.Service{svc}
		}
	} else {
		var all []*registry.Service
		all, batch.Index = s.w.opts.State.ServicesAt(s.watch.Namespace)
		batch.Services = slices.DeleteFunc(all, func(svc *registry.Service) bool { return !s.watch.Matches(svc.Key) })
	}
	s.w.metrics.resets.Inc()
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	s.see(batch.Index)
	return batch
}

// position is the index up to which the watcher has been given everything.
func (s *Stream) position() uint64 {
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	return s.seen
}

// Index is up to where the watcher has everything, also when nothing was to be told for
// long: from there it can come back later.
func (s *Stream) Index() uint64 {
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	if !s.lost && len(s.waiting) == 0 && s.first == nil {
		s.seen = max(s.seen, s.w.given)
	}
	return s.seen
}

// Sent notes that a batch has been handed to the network.
func (s *Stream) Sent(b registry.WatchBatch) {
	s.w.metrics.batches.Inc()
	if !b.Reset {
		s.w.metrics.commitToSent.Observe(time.Since(b.Since).Seconds())
	}
}

// Close ends the stream.
func (s *Stream) Close() { s.closed.Do(func() { s.w.leave(s) }) }
