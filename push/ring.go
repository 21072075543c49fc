package push

import (
	"sort"
	"sync"
	"time"

	"github.com/rollcall-io/rollcall/registry"
)

// ring keeps the newest events of all services, whole entries of the log, for those who
// come back. It is bounded by number and, roughly, by bytes.
type ring struct {
	maxEvents int
	maxBytes  int64

	// mu guards all below. It is held inside Apply, so only for a moment.
	mu     sync.Mutex
	events []kept
	base   uint64 // number of the first event in events; numbers never repeat
	bytes  int64
	// floor is the highest index of which events may be missing: who has seen it or more
	// can go on from the ring.
	floor uint64
	// last is the highest index of an event, or that of the last reset.
	last   uint64
	resets uint64
}

// kept is one event in the ring.
type kept struct {
	registry.ServiceEvent
	at    time.Time
	bytes int64
}

func newRing(maxEvents int, maxBytes int64) *ring {
	return &ring{maxEvents: maxEvents, maxBytes: maxBytes, base: 1}
}

// add appends the events of whole entries and drops old ones, whole entries too.
func (r *ring) add(at time.Time, events []registry.ServiceEvent) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range events {
		k := kept{e, at, sizeOf(&e)}
		r.bytes += k.bytes
		r.events = append(r.events, k)
		r.last = e.Index
	}
	n := 0
	for n < len(r.events) && (len(r.events)-n > r.maxEvents || r.bytes > r.maxBytes || r.events[n].Index == r.floor) {
		r.bytes -= r.events[n].bytes
		r.floor = r.events[n].Index
		n++
	}
	r.drop(n)
}

// drop forgets the first n events. The array moves up when append needs room.
func (r *ring) drop(n int) {
	clear(r.events[:n])
	r.events = r.events[n:]
	r.base += uint64(n)
}

// reset forgets everything: the state jumped to an index.
func (r *ring) reset(applied uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.drop(len(r.events))
	r.events, r.bytes = nil, 0
	r.floor, r.last = applied, applied
	r.resets++
}

// sizeOf is about what an event keeps from being freed.
func sizeOf(e *registry.ServiceEvent) int64 {
	const event, instance, pair = 160, 400, 40
	n := int64(event)
	for _, c := range e.Changes {
		for _, in := range [...]*registry.Instance{c.Before, c.After} {
			if in == nil {
				continue
			}
			n += instance
			for _, p := range in.Metadata {
				n += pair + int64(len(p.Key)+len(p.Value))
			}
		}
	}
	return n
}

// from copies events from a number on, at least a few and then up to the end of their
// entry. missed tells that some before them are gone already.
func (r *ring) from(number uint64) (events []kept, next uint64, resets uint64, missed bool) {
	const chunk = 64
	r.mu.Lock()
	defer r.mu.Unlock()
	if number < r.base {
		number, missed = r.base, true
	}
	rest := r.events[number-r.base:]
	n := min(chunk, len(rest))
	for n > 0 && n < len(rest) && rest[n].Index == rest[n-1].Index {
		n++
	}
	return append([]kept(nil), rest[:n]...), number + uint64(n), r.resets, missed
}

// after lists the events of watched services with a higher index, and the index up to
// which that is complete; false when the ring does not reach back so far.
func (r *ring) after(w registry.Watch) (events []kept, upTo uint64, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if w.After < r.floor {
		return nil, 0, false
	}
	first := sort.Search(len(r.events), func(i int) bool { return r.events[i].Index > w.After })
	for _, k := range r.events[first:] {
		if w.Matches(k.Service) {
			events = append(events, k)
		}
	}
	return events, max(r.last, w.After), true
}

// size is the number of events and about how many bytes they keep.
func (r *ring) size() (events int, bytes int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.events), r.bytes
}
