package fsm

import (
	"fmt"
	"io"

	"github.com/rollcall-io/rollcall/internal/wire"
)

// Restore replaces the state by that of a snapshot. The new state is built beside the
// old one and checked whole; on an error the old one stays. Lease observers are told of
// a reset and of each lease, listeners of the feed of a resync.
func (f *FSM) Restore(from io.ReadCloser) error {
	start := wallClock()
	b, err := readSnapshot(from)
	if err != nil {
		return fmt.Errorf("restore snapshot: %w", err)
	}
	f.mu.Lock()
	f.state, f.tx.state, f.tx.texts = b.state, b.state, b.texts
	f.ring = ring{}
	f.ring.add(b.state.index, b.state.sum)
	for _, o := range f.observers {
		o.LeasesReset()
		b.state.leases.each(o.LeaseGranted)
	}
	applied := f.state.index
	for _, l := range f.events {
		l.EventsReset(applied)
	}
	f.applied.Store(applied)
	f.mu.Unlock()
	f.waiters.wake(applied)
	f.feed.replaced()
	services, instances := f.Counts()
	elapsed := wallClock().Sub(start)
	f.metrics.restore.Observe(elapsed.Seconds())
	f.log.Info("restored a snapshot", "index", applied, "services", services, "instances", instances, "took", elapsed)
	return nil
}

// readSnapshot reads and checks a whole file.
func readSnapshot(from io.Reader) (*builder, error) {
	r, header, err := newSnapshotReader(from)
	if err != nil {
		return nil, err
	}
	defer r.close()
	b := newBuilder(header)
	for {
		kind, content, err := r.frame()
		if err != nil {
			return nil, fmt.Errorf("after record %d: %w", b.records, err)
		}
		switch kind {
		case frameBlock:
			if err := b.block(content); err != nil {
				return nil, err
			}
		case frameTrailer:
			trailer, err := wire.DecodeSnapshotTrailer(content)
			if err != nil {
				return nil, err
			}
			if err := b.finish(trailer); err != nil {
				return nil, err
			}
			return b, r.atEnd()
		default:
			return nil, fmt.Errorf("after record %d: frame of type %q", b.records, kind)
		}
	}
}
