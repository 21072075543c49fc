package health

import (
	"context"
	"slices"
	"time"
)

const (
	// maxLate is how late a scan may come before the gap counts as a pause.
	maxLate = time.Second
	// A storm is when at least stormLeases leases and more than stormPercent of all would
	// be evicted within a beat timeout.
	stormLeases  = 100
	stormPercent = 15
)

// scanLoop scans at each interval until ctx ends. It never waits for a proposal, so that
// its being late means that the process stood still.
func (l *lead) scanLoop(ctx context.Context) {
	interval := l.opts.ScanInterval
	timer := time.NewTimer(interval)
	defer timer.Stop()
	s := scanner{lead: l, checked: true, expired: true}
	last := l.opts.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		now := l.opts.Now()
		late := now - last - interval
		last = now
		if late > maxLate {
			l.compensate(late)
		} else {
			s.pass()
		}
		// Armed after the pass, not ticking: after a pause a whole interval goes by before
		// the next pass, in which the beats that queued up in the meantime are taken.
		timer.Reset(interval)
	}
}

// compensate takes a pause out of lease time, so that nobody grew older in it.
func (l *lead) compensate(gap time.Duration) {
	l.table.shift.Add(int64(gap))
	l.metrics.compensation.Add(gap.Seconds())
	l.log.Warn("scan came late: all leases get the gap, the round is skipped", "gap", gap)
}

// scanner is the state of the scan loop.
type scanner struct {
	*lead
	found findings
	// checked and expired are the switches as the last pass saw them.
	checked bool
	expired bool
	stormy  bool
}

func (s *scanner) pass() {
	sw := s.state.Switches()
	again := sw.HealthCheckEnabled && !s.checked || sw.ExpireInstance && !s.expired
	s.checked, s.expired = sw.HealthCheckEnabled, sw.ExpireInstance
	if again {
		// While it was off clients may have stopped beating for reasons of their own.
		s.table.freshen()
		s.log.Info("health checks switched on again: all leases start afresh")
	}
	began := s.opts.Now()
	s.found.noEvict = !s.expired
	s.table.scan(s.table.leaseTime(), &s.found)
	s.note(&s.found)
	if s.checked {
		s.guardStorm()
		s.handOn()
	}
	s.publish(s.opts.Now() - began)
}

// guardStorm holds evictions back when too many are due at once: a fault of ours or of
// the network is likelier than so many deaths.
func (s *scanner) guardStorm() {
	f := &s.found
	storm := f.doomed >= stormLeases && int64(f.doomed)*100 > s.table.leases.Load()*stormPercent
	if !storm || len(f.evicts) == 0 {
		if s.stormy && f.held == 0 {
			s.stormy = false
			s.log.Info("eviction storm over")
		}
		return
	}
	var held int
	held, f.evicts = s.table.hold(f.evicts)
	f.held += held
	if held == 0 {
		return
	}
	s.metrics.heldTotal.Add(float64(held))
	if !s.stormy {
		s.stormy = true
		s.metrics.storms.Inc()
		s.log.Warn("eviction storm: evictions wait for one more delete timeout",
			"due", f.doomed, "leases", s.table.leases.Load())
	}
}

// handOn passes what is due to the expirer, unless that is still at work: then the next
// scan finds it again.
func (s *scanner) handOn() {
	f := &s.found
	if len(f.flips)+len(f.evicts) == 0 {
		return
	}
	select {
	case s.due <- dueLeases{at: f.at, flips: slices.Clone(f.flips), evicts: slices.Clone(f.evicts)}:
	default:
	}
}

// publish makes what the scan saw visible in metrics and Status.
func (s *scanner) publish(took time.Duration) {
	f := &s.found
	s.metrics.scan.Observe(took.Seconds())
	s.scanned.Store(&scanned{silent: f.silent, held: f.held, storm: s.stormy, took: took})
}
