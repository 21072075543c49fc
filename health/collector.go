package health

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/rollcall-io/rollcall/registry"
)

const (
	// acceptWithoutLeader is how long after the last answered batch beats of known
	// instances are still taken. An ordinary change of leaders is over by then; longer, and
	// clients would hang on to a node that is cut off.
	acceptWithoutLeader = 3 * time.Second
	// sendTimeout bounds one exchange with the leader.
	sendTimeout = time.Second
	// idleEvery is how often an empty batch goes out when there are no beats: it brings
	// the list of silent leases and shows that the leader is there.
	idleEvery = time.Second
	// notedEvery is the same for a node that notes silent leases: should the leader die, what
	// it saw since its last list is lost.
	notedEvery = 500 * time.Millisecond
	// seekEvery is how often a node without a leader looks for one.
	seekEvery = 50 * time.Millisecond
	// maxQueue bounds the beats that wait, and so a batch; maxKeptSent bounds the kept
	// beats that go along with one.
	maxQueue    = 16384
	maxKeptSent = 8192
)

// collector gathers the beats of a node that does not lead and keeps one batch in
// flight to the leader; what comes meanwhile goes with the next. One goroutine, run,
// does the sending; submit parks its caller until the verdict is there.
type collector struct {
	*Keeper
	wake  chan struct{}
	spare sync.Pool // of *waiter, whose channels are empty
	out   outgoing  // run's own

	mu    sync.Mutex
	phase phase
	// cut is set while the last attempt to reach a leader failed.
	cut     bool
	everMet bool
	// metAt is when a leader last answered.
	metAt time.Duration
	queue []*waiter
	// kept holds beats for the next leader, one for each lease.
	kept map[uint32]registry.Position
}

type phase uint8

const (
	phaseNew phase = iota
	phaseRunning
	phaseClosed
)

// waiter is a beat that waits for its verdict. Whoever took it from the queue sets
// verdict and err, then sends on done.
type waiter struct {
	key registry.InstanceKey
	// known is the lease as this node knows it, zero when it does not; byKey asks for the
	// key all the same.
	known   registry.LeaseRef
	byKey   bool
	since   time.Duration
	verdict registry.Verdict
	err     error
	done    chan struct{}
}

func (w *waiter) answer(v registry.Verdict, err error) {
	w.verdict, w.err = v, err
	w.done <- struct{}{}
}

func newCollector(k *Keeper) *collector {
	c := &collector{
		Keeper: k, wake: make(chan struct{}, 1), cut: true,
		kept: make(map[uint32]registry.Position),
	}
	c.spare.New = func() any { return &waiter{done: make(chan struct{}, 1)} }
	return c
}

// submit passes a beat to the leader and waits for the verdict.
func (c *collector) submit(ctx context.Context, b waiter) (registry.Verdict, error) {
	w, verdict, err := c.enqueue(b)
	if w == nil {
		return verdict, err
	}
	c.kick()
	select {
	case <-w.done:
		verdict, err = w.verdict, w.err
		c.spare.Put(w)
		return verdict, err
	case <-ctx.Done():
		// The waiter is left to the collector: it may be in flight.
		return 0, fmt.Errorf("beat of %s: %w", b.key, registry.ErrTimeout)
	}
}

// enqueue queues a beat, or answers it at once: then the waiter is nil.
func (c *collector) enqueue(b waiter) (*waiter, registry.Verdict, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.opts.Now()
	switch {
	case c.phase == phaseNew:
		return nil, 0, registry.ErrNotReady
	case c.phase == phaseClosed:
		return nil, 0, registry.ErrShuttingDown
	case c.cut && c.everMet && b.known.Number != 0:
		if !c.acceptsLocked(now) {
			c.notes.forget(b.known) // refused, and yet a sign of life
			return nil, 0, registry.ErrNoLeader
		}
		c.keepLocked(b.known)
		return nil, registry.BeatRenewed, nil
	case len(c.queue) >= maxQueue:
		return nil, 0, registry.ErrOverloaded
	}
	w := c.spare.Get().(*waiter)
	w.key, w.known, w.byKey, w.since = b.key, b.known, b.byKey, now
	c.queue = append(c.queue, w)
	return w, 0, nil
}

// acceptsLocked tells whether beats are still taken without a leader.
func (c *collector) acceptsLocked(now time.Duration) bool {
	return c.everMet && now-c.metAt <= acceptWithoutLeader
}

func (c *collector) keepLocked(ref registry.LeaseRef) {
	c.kept[ref.Number] = ref.Grant
	c.notes.forget(ref) // whoever takes over and asks is told at once
	c.metrics.kept.Inc()
}

// kick makes run look at once.
func (c *collector) kick() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// met records that a leader answered at time now, and lets run find the next one.
func (c *collector) met(now time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cut, c.everMet, c.metAt = false, true, now
}

func (c *collector) keptCount() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.kept)
}

// run sends until ctx ends, then refuses what still waits.
func (c *collector) run(ctx context.Context) error {
	if err := c.open(); err != nil {
		return err
	}
	defer c.close()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-c.wake:
		case <-timer.C:
		}
		for c.round(ctx) {
		}
		timer.Reset(c.interval())
	}
}

func (c *collector) open() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.phase != phaseNew {
		return fmt.Errorf("health: Run is called once: %w", registry.ErrShuttingDown)
	}
	c.phase = phaseRunning
	return nil
}

func (c *collector) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.phase = phaseClosed
	for _, w := range c.queue {
		w.answer(0, registry.ErrShuttingDown)
	}
	c.queue = nil
}

func (c *collector) interval() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.cut:
		return seekEvery
	case c.notes.any():
		return notedEvery
	}
	return idleEvery
}
