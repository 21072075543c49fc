package raftnode

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rollcall-io/rollcall/raftnode/batch"
)

// metrics are the numbers of one node.
type metrics struct {
	entryCommands, entryBytes, entrySeconds prometheus.Histogram
	inFlight                                prometheus.Gauge
	proposeFaults, forwards, forwarded      *prometheus.CounterVec
	unchanged, unknown                      prometheus.Counter
	forwardSeconds                          prometheus.Histogram
	refused                                 *prometheus.CounterVec
	storeSeconds                            *prometheus.HistogramVec
	storeErrors                             *prometheus.CounterVec
	leaderships, verifies                   prometheus.Counter
}

func newMetrics(reg prometheus.Registerer) *metrics {
	if reg == nil {
		reg = prometheus.NewRegistry()
	}
	counter := func(name, help string) prometheus.Counter {
		c := prometheus.NewCounter(prometheus.CounterOpts{Name: "rollcall_" + name, Help: help})
		reg.MustRegister(c)
		return c
	}
	counters := func(name, help string, labels ...string) *prometheus.CounterVec {
		c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "rollcall_" + name, Help: help}, labels)
		reg.MustRegister(c)
		return c
	}
	histogram := func(name, help string, buckets []float64) prometheus.Histogram {
		h := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "rollcall_" + name, Help: help, Buckets: buckets})
		reg.MustRegister(h)
		return h
	}
	// From a fast disk's half a millisecond to the deadline of a write.
	seconds := prometheus.ExponentialBuckets(0.0005, 2, 14)
	m := &metrics{
		entryCommands:  histogram("proposer_entry_commands", "Commands in one log entry.", prometheus.ExponentialBuckets(1, 2, 9)),
		entryBytes:     histogram("proposer_entry_bytes", "Size of one log entry.", prometheus.ExponentialBuckets(128, 2, 12)),
		entrySeconds:   histogram("proposer_entry_seconds", "Time from sending an entry to Raft until it is applied.", seconds),
		proposeFaults:  counters("proposer_faults_total", "Commands that got no result from the log, by fault.", "fault"),
		forwards:       counters("forward_calls_total", "Calls that carried commands to the leader, by outcome.", "outcome"),
		forwarded:      counters("forward_commands_total", "Commands carried to the leader, by outcome.", "outcome"),
		forwardSeconds: histogram("forward_seconds", "Time of one call that carried commands to the leader.", seconds),
		unchanged:      counter("reregistrations_unchanged_total", "Registrations answered without a log entry because nothing would change."),
		unknown:        counter("unknown_outcomes_total", "Writes answered with an unknown outcome."),
		refused:        counters("peer_refused_total", "Connections to the peer port that were refused, by reason.", "reason"),
		storeErrors:    counters("store_errors_total", "Failed calls of the log store, by operation.", "op"),
		leaderships:    counter("raft_leaderships_total", "Terms in which this node took the lead."),
		verifies:       counter("raft_verify_total", "Leadership checks."),
	}
	m.inFlight = prometheus.NewGauge(prometheus.GaugeOpts{Name: "rollcall_proposer_in_flight", Help: "Log entries on their way."})
	m.storeSeconds = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "rollcall_store_seconds", Help: "Duration of calls of the log store, by operation.",
		Buckets: prometheus.ExponentialBuckets(0.0001, 2.5, 13),
	}, []string{"op"})
	reg.MustRegister(m.inFlight, m.storeSeconds)
	return m
}

// observeStore is store.Options.Observe.
func (m *metrics) observeStore(op string, took time.Duration, err error) {
	m.storeSeconds.WithLabelValues(op).Observe(took.Seconds())
	if err != nil {
		m.storeErrors.WithLabelValues(op).Inc()
	}
}

// observe registers what is read from the node when somebody looks.
func (n *Node) observe(reg prometheus.Registerer) {
	if reg == nil {
		return
	}
	gauge := func(name, help string, value func() float64) {
		reg.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "rollcall_" + name, Help: help}, value))
	}
	status := func(value func(Status) uint64) func() float64 {
		return func() float64 { return float64(value(n.Status())) }
	}
	gauge("raft_term", "Present term.", status(func(s Status) uint64 { return s.Term }))
	gauge("raft_last_index", "Index of the newest log entry.", status(func(s Status) uint64 { return s.LastIndex }))
	gauge("raft_applied_index", "Index of the newest entry applied.", status(func(s Status) uint64 { return s.Applied }))
	gauge("raft_snapshot_index", "Index of the newest snapshot.", status(func(s Status) uint64 { return s.SnapshotIndex }))
	gauge("raft_leader", "1 while this node leads.", func() float64 { return truth(n.leads() != 0) })
	gauge("raft_leader_known", "1 while a leader is known.", func() float64 { return truth(n.tracker.load().id != "") })
	gauge("lag_seconds", "How old the state of this node may be.", func() float64 { return float64(n.LagMs()) / 1000 })
	gauge("disk_free_bytes", "Free space of the data directory.", status(func(s Status) uint64 { return s.FreeDisk }))
	gauge("proposer_queue", "Commands that wait to be packed.", func() float64 {
		return float64(n.proposer.queue.Len(batch.Client) + n.proposer.queue.Len(batch.Background))
	})
	gauge("forward_queue", "Commands that wait to be carried to the leader.", func() float64 {
		return float64(n.forwarder.queue.Len(batch.Client))
	})
	gauge("holders", "Writes that wait for a leader.", func() float64 { return float64(n.holders.Load()) })
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
