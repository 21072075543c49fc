package fsm

import (
	"slices"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rollcall-io/rollcall/registry"
)

// metric is the value of a counter or gauge, of the one that has all the label values.
func metric(tb testing.TB, from prometheus.Gatherer, name string, labels ...string) float64 {
	tb.Helper()
	families, err := from.Gather()
	if err != nil {
		tb.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
		for _, m := range family.GetMetric() {
			var values []string
			for _, l := range m.GetLabel() {
				values = append(values, l.GetValue())
			}
			if slices.Equal(values, labels) {
				return m.GetCounter().GetValue() + m.GetGauge().GetValue()
			}
		}
	}
	tb.Fatalf("no metric %s %q", name, labels)
	return 0
}

func TestMetrics(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	n := &node{newFSM(t, Options{Metrics: reg}), newScript(t)}
	n.ok(register("a", "10.0.0.1", 80))
	n.do(registry.Register{})
	n.ok(register("b", "10.0.0.1", 80))
	n.ok(registry.Deregister{Key: spec("10.0.0.1", 80).In(key("b"))})
	index, d := n.Digest()
	d[0]++
	n.ok(registry.DigestCheck{At: index, Digest: d})
	for name, want := range map[string]float64{
		"applied_index": 15, "entries_total": 5, "services": 2, "instances": 1, "leases": 1, "tombstones": 1,
		"empty_services": 1, "diverged": 1, "feed_dropped_total": 0,
	} {
		if got := metric(t, reg, "rollcall_fsm_"+name); got != want {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	for outcome, want := range map[string]float64{"changed": 2, "unchanged": 0, "refused": 1} {
		if got := metric(t, reg, "rollcall_fsm_commands_total", "register", outcome); got != want {
			t.Errorf("registrations %s: %v, want %v", outcome, got, want)
		}
	}
	if got := metric(t, reg, "rollcall_fsm_digest_checks_total", "different"); got != 1 {
		t.Errorf("%v different digests counted, want 1", got)
	}
}
