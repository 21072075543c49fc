package probe

import "github.com/prometheus/client_golang/prometheus"

// Metrics are the package's series. They outlive the terms.
type Metrics struct {
	results [Refused + 1]prometheus.Counter
	targets prometheus.Gauge
	changes prometheus.Counter
}

// NewMetrics makes the series and registers them with reg unless that is nil.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	results := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "rollcall_health_probes_total", Help: "Probes of persistent instances by result.",
	}, []string{"result"})
	m := &Metrics{
		targets: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "rollcall_health_probe_targets", Help: "Persistent instances that this node probes.",
		}),
		changes: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "rollcall_health_probe_changes_total", Help: "Changes of health that probes proposed.",
		}),
	}
	for o, name := range map[Outcome]string{Up: "up", Down: "down", Refused: "refused"} {
		m.results[o] = results.WithLabelValues(name)
	}
	if reg != nil {
		reg.MustRegister(results, m.targets, m.changes)
	}
	return m
}
