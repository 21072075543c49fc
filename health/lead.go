package health

import (
	"context"
	"errors"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/rollcall-io/rollcall/health/probe"
	"github.com/rollcall-io/rollcall/registry"
)

// lead is one term of this node as the leader: the table and the work done on it.
type lead struct {
	*Keeper
	term   uint64
	table  *table
	due    chan dueLeases
	prober *probe.Prober

	recoveries *leaseQueue
	renewals   *renewals

	mu sync.Mutex
	// quiet are the leases to be listed after the last scan, made at quietAt in lease time
	// and quietNow on the clock; the slice is never changed.
	quiet    []uint32
	quietAt  time.Duration
	quietNow time.Duration
	// told is when each node last got the list.
	told map[string]time.Duration
}

// dueLeases is what the scanner hands to the expirer.
type dueLeases struct {
	at     time.Duration
	flips  []uint32
	evicts []uint32
}

// Lead does a leader's work for one term: it makes the table, takes beats, expires
// leases, recovers instances and probes. It is called once the term's own first command
// is applied here. It asks the other nodes who is silent, for a quarter of a second at most,
// before it takes beats. It blocks until ctx ends and has then waited for all that it started.
func (k *Keeper) Lead(ctx context.Context, term uint64) {
	l := &lead{
		Keeper: k, term: term, due: make(chan dueLeases),
		recoveries: newLeaseQueue(), renewals: newRenewals(), told: make(map[string]time.Duration),
	}
	known := k.silentBefore(ctx, term)
	l.table = newTable(k.opts.Now, known, l.recoveries.add)
	if k.opts.Peers != nil {
		l.table.renewed = l.renewals.add
	}
	stop := k.state.ObserveLeases(l.table)
	defer stop()
	l.table.complete()
	l.firstLook()
	l.prober = probe.New(k.opts.Probe, k.state, l.proposeProbes, k.log.Named("probe"), k.metrics.probes)

	k.lead.Store(l)
	k.collector.kick()
	k.metrics.takeovers.Inc()
	k.log.Info("leases taken over", "term", term, "leases", l.table.leases.Load(),
		"unhealthy", l.table.unhealthy.Load(), "silent", known.silent())

	var group errgroup.Group
	group.Go(func() error { l.scanLoop(ctx); return nil })
	group.Go(func() error { l.expireLoop(ctx); return nil })
	group.Go(func() error { l.recoverLoop(ctx); return nil })
	group.Go(func() error { l.tellLoop(ctx); return nil })
	group.Go(func() error { l.prober.Run(ctx); return nil })
	_ = group.Wait()
	l.end()
}

// end hands what this term knew to the follower that the node is now.
func (l *lead) end() {
	l.lead.Store(nil)
	now := l.opts.Now()
	list, at := l.silent()
	l.notes.set(l.term, list, at)
	l.collector.met(now)
	l.collector.kick()
	l.log.Info("leases handed over", "term", l.term, "leases", l.table.leases.Load())
}

// verdict judges the beat of a lease, or of a key when ref is zero.
func (l *lead) verdict(ref registry.LeaseRef, key registry.InstanceKey, now time.Duration) registry.Verdict {
	if ref.Number != 0 {
		return l.table.beat(ref, now)
	}
	// The lease may be granted anew between the lookup and the beat.
	for range 3 {
		in := l.state.Instance(key)
		switch {
		case in == nil:
			if until, found := l.state.Tombstone(key); found && l.opts.WallMs() < until {
				return registry.BeatTombstoned
			}
			return registry.BeatUnknown
		case !in.Ephemeral:
			return registry.BeatRenewed
		}
		if v := l.table.beat(refOf(in), now); v != registry.BeatStale {
			return v
		}
	}
	return registry.BeatStale
}

const (
	proposeTimeout = 5 * time.Second
	verifyTimeout  = time.Second
	barrierRetry   = 500 * time.Millisecond
)

// propose brings a command into the log in this term and returns when its outcome is
// settled: applied here, or certainly never to be applied. Where the outcome is unknown
// at first it waits until a later command of this term is applied: the log keeps their
// order, so the first one is decided then. The error is nil when the command was
// proposed; it is ctx's when the term ended with the outcome open.
func (l *lead) propose(ctx context.Context, c registry.Command) (registry.Result, error) {
	res, err := l.proposeOnce(ctx, c)
	if err == nil || settled(err) {
		return res, err
	}
	l.metrics.unknown.Inc()
	l.log.Warn("outcome of a proposal unknown, waiting", "term", l.term, "err", err)
	for {
		if !sleep(ctx, barrierRetry) {
			return res, context.Cause(ctx)
		}
		if _, err := l.proposeOnce(ctx, registry.NoOp{}); err == nil {
			return res, nil
		}
	}
}

func (l *lead) proposeOnce(ctx context.Context, c registry.Command) (registry.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, proposeTimeout)
	defer cancel()
	return l.cluster.ProposeAsLeader(ctx, l.term, c)
}

// settled tells whether a failed proposal certainly has no effect: every error in the
// registry's words but ErrUncertain says so.
func settled(err error) bool {
	var e *registry.Error
	return errors.As(err, &e) && e.Code != registry.CodeUncertain
}

// verify proves that this node still leads. It comes after the collecting and before
// the claiming of what is proposed.
func (l *lead) verify(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, verifyTimeout)
	defer cancel()
	return l.cluster.VerifyLeader(ctx)
}

// proposeProbes is the probes' way to the log.
func (l *lead) proposeProbes(ctx context.Context, items []registry.ProbeItem) error {
	_, err := l.proposeOnce(ctx, registry.ProbeBatch{Term: l.term, Items: items})
	return err
}

// sleep waits for d; false when ctx ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
