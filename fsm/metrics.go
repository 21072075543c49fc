package fsm

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rollcall-io/rollcall/internal/wire"
	"github.com/rollcall-io/rollcall/registry"
)

// wallClock is the only clock of this package. It is for metrics: nothing that Apply
// leaves in the state comes from it.
func wallClock() time.Time { return time.Now() }

// The outcomes of a command.
const (
	outcomeChanged = iota
	outcomeUnchanged
	outcomeRefused
	outcomes
)

var outcomeNames = [outcomes]string{"changed", "unchanged", "refused"}

func outcomeOf(r *registry.Result) int {
	switch {
	case r.Err != nil:
		return outcomeRefused
	case r.Changed:
		return outcomeChanged
	}
	return outcomeUnchanged
}

type metrics struct {
	batchSize     prometheus.Histogram
	applySeconds  prometheus.Histogram
	entries       prometheus.Counter
	commands      [wire.KindEnd][outcomes]prometheus.Counter
	digestEqual   prometheus.Counter
	digestDiffers prometheus.Counter
	digestUnknown prometheus.Counter
	feedDropped   prometheus.Counter
	feedResyncs   prometheus.Counter
	feedPanics    prometheus.Counter
	snapshot      prometheus.Histogram
	restore       prometheus.Histogram
}

func newMetrics(reg prometheus.Registerer, f *FSM) *metrics {
	var list collectors
	m := &metrics{
		batchSize: list.histogram("apply_batch_entries", "Log entries in one applied batch.",
			prometheus.ExponentialBuckets(1, 2, 9)),
		applySeconds: list.histogram("apply_seconds", "Time to decode and apply one batch.",
			prometheus.ExponentialBuckets(0.00001, 4, 9)),
		entries: list.counter("entries_total", "Log entries applied, configuration entries included."),
		feedDropped: list.counter("feed_dropped_total",
			"Tasks of the change feed given up for a resync because too many waited."),
		feedResyncs: list.counter("feed_resyncs_total", "Resync tasks handed to listeners."),
		feedPanics:  list.counter("feed_listener_panics_total", "Panics of listeners of the change feed."),
		snapshot: list.histogram("snapshot_seconds", "Time to write one snapshot.",
			prometheus.ExponentialBuckets(0.001, 4, 9)),
		restore: list.histogram("restore_seconds", "Time to read one snapshot.",
			prometheus.ExponentialBuckets(0.001, 4, 9)),
	}
	commands := list.vector("commands_total", "Commands applied, by kind and outcome.", "kind", "outcome")
	for k := wire.KindRegister; k < wire.KindEnd; k++ {
		for o, name := range outcomeNames {
			m.commands[k][o] = commands.WithLabelValues(k.String(), name)
		}
	}
	checks := list.vector("digest_checks_total",
		"Comparisons of this node's state with the leader's, by result.", "result")
	m.digestEqual = checks.WithLabelValues("equal")
	m.digestDiffers = checks.WithLabelValues("different")
	m.digestUnknown = checks.WithLabelValues("unknown_index")
	list.gauges(f)
	if reg != nil {
		reg.MustRegister(list...)
	}
	return m
}

// collectors is the list of what is to be registered.
type collectors []prometheus.Collector

const (
	metricNamespace = "rollcall"
	metricSubsystem = "fsm"
)

func (c *collectors) counter(name, help string) prometheus.Counter {
	m := prometheus.NewCounter(prometheus.CounterOpts{
		Namespace: metricNamespace, Subsystem: metricSubsystem, Name: name, Help: help,
	})
	*c = append(*c, m)
	return m
}

func (c *collectors) vector(name, help string, labels ...string) *prometheus.CounterVec {
	m := prometheus.NewCounterVec(prometheus.CounterOpts{
		Namespace: metricNamespace, Subsystem: metricSubsystem, Name: name, Help: help,
	}, labels)
	*c = append(*c, m)
	return m
}

func (c *collectors) histogram(name, help string, buckets []float64) prometheus.Histogram {
	m := prometheus.NewHistogram(prometheus.HistogramOpts{
		Namespace: metricNamespace, Subsystem: metricSubsystem, Name: name, Help: help, Buckets: buckets,
	})
	*c = append(*c, m)
	return m
}

func (c *collectors) gauge(name, help string, read func() float64) {
	*c = append(*c, prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Namespace: metricNamespace, Subsystem: metricSubsystem, Name: name, Help: help,
	}, read))
}

// gauges are read when they are asked for, each under the state's lock for a moment.
func (c *collectors) gauges(f *FSM) {
	locked := func(read func(*state) int) func() float64 {
		return func() float64 {
			f.mu.RLock()
			defer f.mu.RUnlock()
			return float64(read(f.state))
		}
	}
	c.gauge("applied_index", "Raft index of the last entry applied.", func() float64 { return float64(f.Applied()) })
	c.gauge("services", "Services registered.", locked(func(s *state) int { n, _ := s.reg.Counts(); return n }))
	c.gauge("instances", "Instances registered.", locked(func(s *state) int { _, n := s.reg.Counts(); return n }))
	c.gauge("leases", "Leases granted.", locked(func(s *state) int { return s.leases.inUse() }))
	c.gauge("tombstones", "Marks of deregistered instances.", locked(func(s *state) int { return len(s.tombs.queue) }))
	c.gauge("empty_services", "Services without instances that will be cleaned up.",
		locked(func(s *state) int { return len(s.empty) }))
	c.gauge("diverged", "1 when this node's state was found to differ from the leader's.", func() float64 {
		if _, yes := f.Diverged(); yes {
			return 1
		}
		return 0
	})
	c.gauge("feed_depth", "Services that wait in the change feed.",
		func() float64 { n, _ := f.feed.load(); return float64(n) })
	c.gauge("feed_age_seconds", "How long the first service in the change feed has waited.",
		func() float64 { _, age := f.feed.load(); return age.Seconds() })
}

func (m *metrics) applyStarts() time.Time { return wallClock() }

// applyEnds records a batch and empties the transaction's counts.
func (m *metrics) applyEnds(start time.Time, entries int, t *tx) {
	m.applySeconds.Observe(wallClock().Sub(start).Seconds())
	m.batchSize.Observe(float64(entries))
	m.entries.Add(float64(entries))
	for k := range t.counts {
		for o, n := range t.counts[k] {
			if n > 0 {
				m.commands[k][o].Add(float64(n))
				t.counts[k][o] = 0
			}
		}
	}
}
