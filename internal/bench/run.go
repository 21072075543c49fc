package bench

import (
	"context"
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// cleanUpTimeout bounds the removal of what a run registered.
const cleanUpTimeout = 2 * time.Minute

// run is one measurement.
type run struct {
	opts     Options
	fleet    *fleet
	progress io.Writer

	next       atomic.Int64 // number of the next request
	done       atomic.Int64
	registered atomic.Int64 // instances that may be there

	mu        sync.Mutex
	latencies []time.Duration
	failed    int
	first     error
}

// each sends n requests, or as many as fit until ctx ends when n is 0, over all
// connections at once. A failed one is counted and the worker goes on.
func (r *run) each(ctx context.Context, n int, send func(ctx context.Context, i, node int) error) {
	r.next.Store(0)
	var workers sync.WaitGroup
	for w := range r.opts.Conns {
		workers.Go(func() {
			var mine []time.Duration
			for ctx.Err() == nil {
				i := int(r.next.Add(1)) - 1
				if n > 0 && i >= n {
					break
				}
				began := time.Now()
				err := send(ctx, i, w)
				if ctx.Err() != nil {
					break // cut off by the end, not by the server
				}
				r.note(err)
				mine = append(mine, time.Since(began))
			}
			r.mu.Lock()
			r.latencies = append(r.latencies, mine...)
			r.mu.Unlock()
		})
	}
	workers.Wait()
}

func (r *run) note(err error) {
	r.done.Add(1)
	if err == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failed++
	if r.first == nil {
		r.first = err
	}
}

// prepare registers the instances that the measurement works on.
func (r *run) prepare(ctx context.Context) error {
	stop := r.report("registering")
	defer stop()
	r.registered.Store(int64(r.opts.Instances))
	r.each(ctx, r.opts.Instances, func(ctx context.Context, i, node int) error { return r.fleet.do(ctx, "register", i, node) })
	if r.first != nil {
		return fmt.Errorf("register the instances (%d of %d failed): %w", r.failed, r.opts.Instances, r.first)
	}
	r.latencies = nil
	return ctx.Err()
}

func (r *run) measure(ctx context.Context) (Report, error) {
	before, err := r.fleet.index(ctx)
	if err != nil {
		return Report{}, err
	}
	r.done.Store(0)
	stop := r.report(r.opts.Op)
	began := time.Now()
	if r.opts.Op == "live" {
		r.live(ctx)
	} else {
		r.full(ctx)
	}
	took := time.Since(began)
	stop()
	after, err := r.fleet.index(ctx)
	if err != nil {
		return Report{}, err
	}
	report := r.summary(took)
	report.IndexGrowth = after - before
	if r.opts.Op == "live" {
		for node := range r.opts.Addrs {
			missing, err := r.fleet.missing(ctx, node)
			if err != nil {
				return Report{}, err
			}
			report.Unhealthy = max(report.Unhealthy, missing)
		}
	}
	return report, ctx.Err()
}

// full sends as fast as the connections allow.
func (r *run) full(ctx context.Context) {
	bounded, cancel := context.WithTimeout(ctx, r.opts.Duration)
	defer cancel()
	n, modulo := 0, r.opts.Instances
	if r.opts.Op == "register" {
		n, modulo = r.opts.Instances, r.opts.Instances
	}
	r.each(bounded, n, func(ctx context.Context, i, node int) error {
		if r.opts.Op == "register" {
			r.registered.Store(max(r.registered.Load(), int64(i+1)))
		}
		return r.fleet.do(ctx, r.opts.Op, i%modulo, node)
	})
}

// live lets every instance beat once an interval, evenly spread.
func (r *run) live(ctx context.Context) {
	rounds := int(r.opts.Duration / r.opts.Interval)
	began := time.Now()
	r.each(ctx, max(1, rounds)*r.opts.Instances, func(ctx context.Context, i, node int) error {
		due := began.Add(time.Duration(float64(r.opts.Interval) * float64(i) / float64(r.opts.Instances)))
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(time.Until(due)):
		}
		return r.fleet.do(ctx, "live", i%r.opts.Instances, node+i)
	})
}

func (r *run) summary(took time.Duration) Report {
	report := Report{
		Op: r.opts.Op, Nodes: len(r.opts.Addrs), Conns: r.opts.Conns, Instances: r.opts.Instances,
		Seconds: took.Seconds(), Done: len(r.latencies) - r.failed, Failed: r.failed,
	}
	report.PerSecond = float64(report.Done) / took.Seconds()
	if r.first != nil {
		report.FirstFailure = r.first.Error()
	}
	if r.opts.Op == "live" {
		return report // its requests wait for their turn: their times say nothing
	}
	slices.Sort(r.latencies)
	at := func(q float64) float64 {
		if len(r.latencies) == 0 {
			return 0
		}
		return r.latencies[int(q*float64(len(r.latencies)-1))].Seconds() * 1000
	}
	report.P50Ms, report.P99Ms, report.MaxMs = at(0.50), at(0.99), at(1)
	return report
}

// cleanUp removes what the run registered, also when the run was cut off.
func (r *run) cleanUp() error {
	ctx, cancel := context.WithTimeout(context.Background(), cleanUpTimeout)
	defer cancel()
	stop := r.report("removing")
	defer stop()
	r.failed, r.first = 0, nil
	r.each(ctx, int(r.registered.Load()), func(ctx context.Context, i, node int) error { return r.fleet.do(ctx, "deregister", i, node) })
	if r.first != nil {
		return fmt.Errorf("remove the instances (%d left): %w", r.failed, r.first)
	}
	return nil
}

// report prints how far the run is, every few seconds, until the returned function is
// called, which waits for the last line.
func (r *run) report(what string) (stop func()) {
	quit, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(5 * time.Second)
		defer tick.Stop()
		for {
			select {
			case <-quit:
				return
			case <-tick.C:
				fmt.Fprintf(r.progress, "%s: %d\n", what, r.done.Load())
			}
		}
	}()
	return func() { close(quit); <-ended }
}
