package push

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rollcall-io/rollcall/registry"
)

// WatchState reads the applied state together with the index at which it was so.
// Services are immutable.
type WatchState interface {
	ServiceAt(registry.ServiceKey) (*registry.Service, uint64)
	ServicesAt(namespace string) ([]*registry.Service, uint64)
}

// WatchOptions configure Watches. State is required; for the rest see
// DefaultWatchOptions.
type WatchOptions struct {
	State   WatchState
	Metrics prometheus.Registerer
	// MaxWatches bounds the streams of this node.
	MaxWatches int
	// MaxPending bounds the events that wait for one stream; one that falls further
	// behind is given the full state.
	MaxPending int
	// RingEvents and RingBytes bound the events that are kept for those who come back.
	RingEvents int
	RingBytes  int64
	// MinMerge and MaxMerge are as in Options.
	MinMerge, MaxMerge time.Duration
}

// DefaultWatchOptions are the limits of a production node, without its state.
func DefaultWatchOptions() WatchOptions {
	return WatchOptions{
		MaxWatches: 10_000, MaxPending: 2048, RingEvents: 65_536, RingBytes: 64 << 20,
		MinMerge: 20 * time.Millisecond, MaxMerge: 500 * time.Millisecond,
	}
}

func (o WatchOptions) validate() error {
	if o.State == nil {
		return errors.New("no State")
	}
	if o.MaxWatches <= 0 || o.MaxPending <= 0 || o.RingEvents <= 0 || o.RingBytes <= 0 {
		return errors.New("MaxWatches, MaxPending, RingEvents and RingBytes must be positive")
	}
	if o.MinMerge <= 0 || o.MaxMerge < o.MinMerge {
		return errors.New("MinMerge must be positive and not above MaxMerge")
	}
	return nil
}

// Watches hands events to those who watch services. It hears of them inside Apply, keeps
// the newest in a ring, and one goroutine gives them to the streams concerned. All
// methods are safe for concurrent use.
type Watches struct {
	opts    WatchOptions
	ring    *ring
	metrics watchMetrics
	wakeCh  chan struct{} // holds one
	doneCh  chan struct{} // closed by Close
	closing sync.Once

	// mu guards all below and the waiting events of every stream. ring.mu is never taken
	// under it.
	mu     sync.Mutex
	byKey  map[registry.ServiceKey]map[*Stream]struct{}
	many   map[*Stream]struct{}
	count  int
	given  uint64 // index up to which streams have been given what there was
	resets uint64 // of the ring, as far as streams know
}

// NewWatches makes Watches that take events at once and hand them out while Run runs.
func NewWatches(o WatchOptions) (*Watches, error) {
	if err := o.validate(); err != nil {
		return nil, fmt.Errorf("watch options: %w", err)
	}
	w := &Watches{
		opts: o, ring: newRing(o.RingEvents, o.RingBytes), wakeCh: make(chan struct{}, 1), doneCh: make(chan struct{}),
		byKey: make(map[registry.ServiceKey]map[*Stream]struct{}), many: make(map[*Stream]struct{}),
	}
	w.metrics = newWatchMetrics(o.Metrics, w)
	return w, nil
}

// EventsApplied takes the events of whole entries. It is called inside Apply.
func (w *Watches) EventsApplied(at time.Time, events []registry.ServiceEvent) {
	w.ring.add(at, events)
	w.kick()
}

// EventsReset takes a jump of the state: every stream is given the full state.
func (w *Watches) EventsReset(applied uint64) {
	w.ring.reset(applied)
	w.kick()
}

func (w *Watches) kick() {
	select {
	case w.wakeCh <- struct{}{}:
	default:
	}
}

// Run hands events to the streams until ctx ends, whose error it returns.
func (w *Watches) Run(ctx context.Context) error {
	defer w.Close()
	number := uint64(1)
	for {
		events, next, resets, missed := w.ring.from(number)
		number = next
		w.give(events, resets, missed)
		if len(events) > 0 {
			continue
		}
		select {
		case <-w.wakeCh:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Close ends all streams and refuses new ones. It does not wait.
func (w *Watches) Close() { w.closing.Do(func() { close(w.doneCh) }) }

// give adds events of whole entries to the streams concerned, all at once.
func (w *Watches) give(events []kept, resets uint64, missed bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if resets != w.resets || missed {
		w.resets = resets
		w.each(func(s *Stream) { s.lose() })
	}
	for i := range events {
		e := &events[i]
		for s := range w.byKey[e.Service] {
			s.give(e)
		}
		for s := range w.many {
			if s.watch.Matches(e.Service) {
				s.give(e)
			}
		}
	}
	if len(events) > 0 {
		w.given = max(w.given, events[len(events)-1].Index)
	}
}

// each needs mu.
func (w *Watches) each(do func(*Stream)) {
	for _, set := range w.byKey {
		for s := range set {
			do(s)
		}
	}
	for s := range w.many {
		do(s)
	}
}

// Watch opens a stream; the caller closes it. Errors: registry.ErrOverloaded when there
// are too many, registry.ErrShuttingDown after Close.
func (w *Watches) Watch(q registry.Watch) (*Stream, error) {
	select {
	case <-w.doneCh:
		return nil, registry.ErrShuttingDown
	default:
	}
	s := &Stream{w: w, watch: q, wakeCh: make(chan struct{}, 1), pace: pace{min: w.opts.MinMerge, max: w.opts.MaxMerge}}
	// In the table first, then a look at the past: nothing falls between.
	if !w.join(s) {
		w.metrics.refused.Inc()
		return nil, registry.ErrOverloaded.Because(fmt.Sprintf("this node has %d watches already", w.opts.MaxWatches))
	}
	if !q.Resume || !s.resume() {
		s.markLost()
	}
	return s, nil
}

func (w *Watches) join(s *Stream) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.count >= w.opts.MaxWatches {
		return false
	}
	w.count++
	key, one := s.watch.Key()
	if !one {
		w.many[s] = struct{}{}
		return true
	}
	set := w.byKey[key]
	if set == nil {
		set = make(map[*Stream]struct{})
		w.byKey[key] = set
	}
	set[s] = struct{}{}
	return true
}

func (w *Watches) leave(s *Stream) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.count--
	key, one := s.watch.Key()
	if !one {
		delete(w.many, s)
		return
	}
	delete(w.byKey[key], s)
	if len(w.byKey[key]) == 0 {
		delete(w.byKey, key)
	}
}

// streams is the number of open streams.
func (w *Watches) streams() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.count
}
