package health

import (
	"context"
	"fmt"
	"time"

	"github.com/rollcall-io/rollcall/registry"
)

// outgoing is the batch that the collector has in hand. Its slices are used again once
// an exchange succeeded; after a failure the transport may still hold them.
type outgoing struct {
	queue  []*waiter // the collector's queue, taken whole
	leases []registry.LeaseRef
	keys   []registry.InstanceKey
	// byLease and byKey wait for the verdicts on leases and keys. leases goes on after
	// them with kept beats, on which nobody waits.
	byLease []*waiter
	byKey   []*waiter
}

func (o *outgoing) reset() {
	clear(o.byLease)
	clear(o.byKey)
	o.leases, o.keys = o.leases[:0], o.keys[:0]
	o.byLease, o.byKey = o.byLease[:0], o.byKey[:0]
}

// round makes one exchange with the leader, or serves the beats here when this node
// leads. It tells whether there is more to send.
func (c *collector) round(ctx context.Context) bool {
	if l := c.lead.Load(); l != nil {
		c.take()
		return c.serve(l)
	}
	if id, _, self := c.cluster.Leader(); id == "" || self {
		// Also while this node has just been elected and makes its table.
		c.failed()
		return false
	}
	c.take()
	sending, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	answer, err := c.cluster.SendBeats(sending, registry.BeatBatch{
		Node: c.opts.Node, Applied: c.state.Applied(), Leases: c.out.leases, Keys: c.out.keys,
	})
	if err == nil {
		err = c.fits(answer)
	}
	if err != nil {
		c.metrics.batchesFailed.Inc()
		c.log.Debug("beats not delivered", "beats", len(c.out.leases)+len(c.out.keys), "err", err)
		c.failed()
		return false
	}
	return c.delivered(answer)
}

// take moves what waits, and some of what is kept, into the outgoing batch.
func (c *collector) take() {
	o := &c.out
	c.mu.Lock()
	defer c.mu.Unlock()
	c.queue, o.queue = o.queue[:0], c.queue
	for _, w := range o.queue {
		if w.known.Number == 0 || w.byKey {
			o.keys, o.byKey = append(o.keys, w.key), append(o.byKey, w)
		} else {
			o.leases, o.byLease = append(o.leases, w.known), append(o.byLease, w)
		}
	}
	clear(o.queue)
	for number, grant := range c.kept {
		if len(o.leases)-len(o.byLease) >= maxKeptSent {
			break
		}
		o.leases = append(o.leases, registry.LeaseRef{Number: number, Grant: grant})
		delete(c.kept, number)
	}
}

func (c *collector) fits(a registry.BeatAnswer) error {
	if len(a.Leases) != len(c.out.leases) || len(a.Keys) != len(c.out.keys) {
		return fmt.Errorf("answer holds %d and %d verdicts for %d and %d beats",
			len(a.Leases), len(a.Keys), len(c.out.leases), len(c.out.keys))
	}
	return nil
}

// delivered hands the verdicts out. It tells whether more beats wait.
func (c *collector) delivered(a registry.BeatAnswer) bool {
	o := &c.out
	c.metrics.batches.Inc()
	c.metrics.batchBeats.Observe(float64(len(o.leases) + len(o.keys)))
	if a.HasSilent {
		c.notes.set(a.Term, a.Silent, c.opts.Now())
	} else {
		c.notes.forgetRenewed(o.leases, a.Leases)
	}
	return c.handOut(a)
}

// serve judges the batch here, on the leader.
func (c *collector) serve(l *lead) bool {
	return c.handOut(l.judge(registry.BeatBatch{Leases: c.out.leases, Keys: c.out.keys}))
}

func (c *collector) handOut(a registry.BeatAnswer) bool {
	c.met(c.opts.Now())
	o := &c.out
	for i, w := range o.byLease {
		w.answer(a.Leases[i], nil)
	}
	for i, w := range o.byKey {
		w.answer(a.Keys[i], nil)
	}
	o.reset()
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.queue)+len(c.kept) > 0
}

// failed settles beats that reached no leader, or perhaps did: those of known instances
// are kept for the next one and, for a while after the last answer, the client is told
// that they were taken. The others wait for a leader as long as a beat may, and so do all
// on a node that has not met one since its start.
func (c *collector) failed() {
	o, now := &c.out, c.opts.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cut = true
	for _, ref := range o.leases[len(o.byLease):] {
		if _, newer := c.kept[ref.Number]; !newer {
			c.kept[ref.Number] = ref.Grant // kept and counted before
		}
	}
	waiting := append(append(o.byLease, o.byKey...), c.queue...)
	c.queue = nil
	for _, w := range waiting {
		c.settleLocked(w, now)
	}
	c.out = outgoing{}
}

// settleLocked answers a beat that reached no leader, or lets it wait on.
func (c *collector) settleLocked(w *waiter, now time.Duration) {
	known := w.known.Number != 0
	switch {
	case known && c.acceptsLocked(now):
		c.keepLocked(w.known)
		w.answer(registry.BeatRenewed, nil)
	case known && c.everMet, now-w.since >= beatPatience:
		if known {
			c.keepLocked(w.known) // refused, and yet a sign of life
		}
		w.answer(0, registry.ErrNoLeader)
	default:
		c.queue = append(c.queue, w)
	}
}
