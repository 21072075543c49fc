package client

import "github.com/prometheus/client_golang/prometheus"

// metrics are the client's own; several clients of one process need registerers that tell
// them apart (prometheus.WrapRegistererWith).
type metrics struct {
	requests  *prometheus.CounterVec
	beats     *prometheus.CounterVec
	instances prometheus.GaugeFunc
	pending   prometheus.GaugeFunc
	lag       prometheus.Gauge
	followed  prometheus.Gauge
	updates   *prometheus.CounterVec
	hints     *prometheus.CounterVec
}

func newMetrics(t *table) *metrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: "rollcall_client_" + name, Help: help}, labels)
	}
	gauge := func(name, help string) prometheus.Gauge {
		return prometheus.NewGauge(prometheus.GaugeOpts{Name: "rollcall_client_" + name, Help: help})
	}
	return &metrics{
		requests: counter("requests_total", "Requests by operation and HTTP status, or error.", "op", "code"),
		beats:    counter("beats_total", "Beats by outcome: ok, unknown, error.", "outcome"),
		instances: prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "rollcall_client_instances", Help: "Instances that this client wants to be registered, or is about to deregister.",
		}, func() float64 { all, _ := t.counts(); return float64(all) }),
		pending: prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "rollcall_client_instances_pending", Help: "Those of them that no server has acknowledged.",
		}, func() float64 { all, registered := t.counts(); return float64(all - registered) }),
		lag:      gauge("beat_lag_seconds", "How late the newest beat was sent."),
		followed: gauge("followed_services", "Services that are followed."),
		updates:  counter("updates_total", "Lists by what became of them: changed, same, older, protected.", "outcome"),
		hints:    counter("hints_total", "Hints that a service changed, by stream, push or caller.", "source"),
	}
}

func (m *metrics) all() []prometheus.Collector {
	return []prometheus.Collector{m.requests, m.beats, m.instances, m.pending, m.lag, m.followed, m.updates, m.hints}
}

func (m *metrics) register(r prometheus.Registerer) error {
	if r == nil {
		return nil
	}
	all := m.all()
	for i, c := range all {
		if err := r.Register(c); err != nil {
			for _, done := range all[:i] {
				r.Unregister(done)
			}
			return err
		}
	}
	return nil
}

func (m *metrics) unregister(r prometheus.Registerer) {
	if r == nil {
		return
	}
	for _, c := range m.all() {
		r.Unregister(c)
	}
}

func (m *metrics) request(op, code string) { m.requests.WithLabelValues(op, code).Inc() }
