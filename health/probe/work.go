package probe

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/rollcall-io/rollcall/registry"
)

// ripen queues the targets that are due.
func (p *Prober) ripen() {
	if !p.services.Switches().HealthCheckEnabled {
		return
	}
	now := time.Now()
	for _, targets := range p.targets {
		for _, t := range targets {
			if !t.busy && !t.due.After(now) {
				t.busy = true
				p.ready = append(p.ready, t)
			}
		}
	}
}

// start begins as many of the queued probes as there is room for.
func (p *Prober) start(ctx context.Context, group *sync.WaitGroup) {
	n := min(p.settings.Concurrency-p.running, len(p.ready))
	for _, t := range p.ready[:n] {
		group.Go(func() { p.check(ctx, t) })
	}
	p.running += n
	p.ready = p.ready[n:]
}

// check makes one probe. It reads of the target only what never changes.
func (p *Prober) check(ctx context.Context, t *target) {
	kind := strings.ToUpper(t.settings.Type)
	limited, cancel := context.WithTimeout(ctx, p.settings.timeout(kind))
	defer cancel()
	outcome := p.settings.Checkers[kind].Check(limited, t.address, t.settings)
	select {
	case p.results <- result{t, outcome}:
	case <-ctx.Done(): // the result of a probe that was cut short says nothing
	}
}

// take counts a result and queues the verdict that follows from it, if any.
func (p *Prober) take(r result) {
	t, now := r.target, time.Now()
	p.running--
	p.metrics.results[r.outcome].Inc()
	t.busy = false
	t.next(now, now.Sub(t.due), &p.settings)
	healthy, certain := t.count(r.outcome, p.services.Switches().CheckTimes)
	if !certain || t.proposed || p.targets[t.key.Service][t.key.Address()] != t {
		return
	}
	s := p.services.Service(t.key.Service)
	if s == nil {
		return
	}
	in := s.Instance(t.key.Address())
	if in == nil || in.Ephemeral || in.Generation != t.generation || in.Healthy == healthy {
		return
	}
	t.proposed = true
	p.pending = append(p.pending, verdict{t, healthy})
}

// send brings the queued verdicts on their way, one command at a time.
func (p *Prober) send(ctx context.Context, group *sync.WaitGroup) {
	if p.sending || len(p.pending) == 0 {
		return
	}
	n := min(len(p.pending), batchItems)
	items, targets := make([]registry.ProbeItem, n), make([]*target, n)
	for i, v := range p.pending[:n] {
		items[i] = registry.ProbeItem{Key: v.target.key, Generation: v.target.generation, Healthy: v.healthy}
		targets[i] = v.target
	}
	p.pending = append(p.pending[:0], p.pending[n:]...)
	p.sending = true
	group.Go(func() {
		if err := p.propose(ctx, items); err != nil {
			if ctx.Err() == nil {
				p.log.Warn("verdicts left to the next probes", "count", n, "err", err)
			}
		} else {
			p.metrics.changes.Add(float64(n))
			p.log.Info("health changed by probes", "count", n, "first", items[0].Key, "healthy", items[0].Healthy)
		}
		p.done <- targets // one command at a time: there is room
	})
}

// sent ends a proposal. Where it failed, or its outcome is not known, the next probe
// compares with the state anew.
func (p *Prober) sent(targets []*target) {
	p.sending = false
	for _, t := range targets {
		t.proposed = false
	}
}
