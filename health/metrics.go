package health

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/rollcall-io/rollcall/health/probe"
)

// metrics are the package's series, all named rollcall_health_….
type metrics struct {
	beatKnown, beatRegistered, beatUnknown, beatRefused prometheus.Counter

	batches, batchesFailed, kept prometheus.Counter
	batchBeats                   prometheus.Histogram

	takeovers, compensation prometheus.Counter
	flipsDown, flipsUp      prometheus.Counter
	evictions, skipped      prometheus.Counter
	dropped, unknown        prometheus.Counter
	storms, heldTotal       prometheus.Counter
	scan                    prometheus.Histogram
	probes                  *probe.Metrics
}

func newMetrics(reg prometheus.Registerer, k *Keeper) *metrics {
	f := factory{reg}
	beats := f.vec("beats_total", "Beats by what became of them: known, registered, unknown, refused.", "outcome")
	flips := f.vec("flips_total", "Instances whose health this leader changed.", "to")
	m := &metrics{
		beatKnown: beats.WithLabelValues("known"), beatRegistered: beats.WithLabelValues("registered"),
		beatUnknown: beats.WithLabelValues("unknown"), beatRefused: beats.WithLabelValues("refused"),
		batches:       f.counter("batches_total", "Batches of beats that the leader answered."),
		batchesFailed: f.counter("batches_failed_total", "Batches of beats without an answer."),
		kept:          f.counter("beats_kept_total", "Beats kept for the next leader."),
		batchBeats: f.histogram("batch_beats", "Beats in an answered batch.",
			prometheus.ExponentialBuckets(1, 4, 8)),
		takeovers: f.counter("takeovers_total", "Times that this node took over the leases."),
		compensation: f.counter("pause_compensation_seconds_total",
			"Time taken out of all leases because a scan came late."),
		flipsDown: flips.WithLabelValues("unhealthy"), flipsUp: flips.WithLabelValues("healthy"),
		evictions: f.counter("evictions_total", "Instances that this leader evicted."),
		skipped:   f.counter("skipped_total", "Flips and evictions that a guard in the state left out."),
		dropped: f.counter("put_off_total",
			"Rounds of flips, evictions or recoveries put off: leadership not proven, or log refused."),
		unknown:   f.counter("outcome_unknown_total", "Proposals whose outcome was unknown at first."),
		storms:    f.counter("storms_total", "Eviction storms."),
		heldTotal: f.counter("storm_held_total", "Evictions that the storm guard put off."),
		// A million leases take a few milliseconds.
		scan:   f.histogram("scan_seconds", "Duration of a scan.", prometheus.ExponentialBuckets(1e-5, 4, 8)),
		probes: probe.NewMetrics(reg),
	}
	gauge := func(name, help string, of func(Status) int) { f.gauge(name, help, of, k) }
	gauge("leases", "Leases in force, on the leader.", func(s Status) int { return s.Leases })
	gauge("unhealthy", "Leases whose instance is unhealthy, on the leader.", func(s Status) int { return s.Unhealthy })
	gauge("silent", "Leases whose beat is late, on the leader.", func(s Status) int { return s.Silent })
	gauge("storm_held", "Leases that the storm guard holds, on the leader.", func(s Status) int { return s.StormHeld })
	gauge("kept_beats", "Beats that wait for a leader.", func(s Status) int { return s.KeptBeats })
	return m
}

// factory makes series under one prefix and registers them when there is somewhere to.
type factory struct{ reg prometheus.Registerer }

const subsystem = "rollcall_health_"

func (f factory) add(c prometheus.Collector) {
	if f.reg != nil {
		f.reg.MustRegister(c)
	}
}

func (f factory) counter(name, help string) prometheus.Counter {
	c := prometheus.NewCounter(prometheus.CounterOpts{Name: subsystem + name, Help: help})
	f.add(c)
	return c
}

func (f factory) vec(name, help, label string) *prometheus.CounterVec {
	c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: subsystem + name, Help: help}, []string{label})
	f.add(c)
	return c
}

func (f factory) histogram(name, help string, buckets []float64) prometheus.Histogram {
	h := prometheus.NewHistogram(prometheus.HistogramOpts{Name: subsystem + name, Help: help, Buckets: buckets})
	f.add(h)
	return h
}

func (f factory) gauge(name, help string, of func(Status) int, k *Keeper) {
	f.add(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: subsystem + name, Help: help},
		func() float64 { return float64(of(k.Status())) }))
}
