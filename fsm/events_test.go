package fsm

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"github.com/rollcall-io/rollcall/registry"
)

// recorder keeps the events that it is told of.
type recorder struct {
	events []registry.ServiceEvent
	resets []uint64
}

func (r *recorder) EventsApplied(_ time.Time, events []registry.ServiceEvent) {
	r.events = append(r.events, events...)
}
func (r *recorder) EventsReset(applied uint64) { r.resets = append(r.resets, applied) }

// text is the events told since the last call, `name: reason ip before>after …`.
func (r *recorder) text() string {
	var lines []string
	for _, e := range r.events {
		parts := []string{e.Service.Name() + ":"}
		for _, c := range e.Changes {
			parts = append(parts, fmt.Sprintf("%s(%s>%s)", c.Reason, short(c.Before), short(c.After)))
		}
		if e.Edited {
			parts = append(parts, "edited")
		}
		if e.Deleted {
			parts = append(parts, "deleted")
		}
		lines = append(lines, strings.Join(parts, " "))
	}
	r.events = nil
	return strings.Join(lines, "; ")
}

func short(in *registry.Instance) string {
	if in == nil {
		return ""
	}
	health := ""
	if !in.Healthy {
		health = "!"
	}
	return fmt.Sprintf("%s*%v%s", strings.TrimPrefix(in.IP, "10.0.0."), in.Weight, health)
}

func TestEvents_ReasonsFollowFromTheCommands(t *testing.T) {
	n := newNode(t)
	r := &recorder{}
	n.ListenEvents(r)
	first := register("orders", "10.0.0.1", 80)
	heavier := first
	heavier.Spec.Weight = 2
	weight, sick := 3.0, false
	at := spec("10.0.0.1", 80).In(key("orders"))
	lease := func() registry.LeaseRef { return refOf(n.Instance(at)) }
	for _, step := range []struct {
		want string
		make func() registry.Command
	}{
		{"orders: registered(>1*1)", func() registry.Command { return first }},
		{"", func() registry.Command { return first }},
		{"orders: updated(1*1>1*2)", func() registry.Command { return heavier }},
		{"orders: edited(1*2>1*3)", func() registry.Command { return registry.Patch{Key: at, Weight: &weight} }},
		{"orders: unhealthy(1*3>1*3!)", func() registry.Command { return registry.Patch{Key: at, Healthy: &sick} }},
		{"orders: recovered(1*3!>1*3)", func() registry.Command {
			l := lease()
			return registry.HealthBatch{Term: n.term, Items: []registry.HealthItem{{Lease: l.Number, Grant: l.Grant, Healthy: true}}}
		}},
		{"orders: edited(1*3>1*3)", func() registry.Command {
			return registry.MetadataBatch{Service: key("orders"), Metadata: registry.Metadata{{Key: "a", Value: "b"}}}
		}},
		{"orders: expired(1*3>)", func() registry.Command {
			return registry.EvictBatch{Term: n.term, Items: []registry.LeaseRef{lease()}}
		}},
		{"orders: edited", func() registry.Command {
			return registry.ServiceUpdate{Key: key("orders"), Spec: registry.ServiceSpec{ProtectThreshold: 0.5}}
		}},
		{"orders: edited", func() registry.Command {
			return registry.ClusterUpdate{Key: key("orders"), Cluster: registry.NewCluster("blue")}
		}},
		{"orders: edited deleted", func() registry.Command { return registry.ServiceDelete{Key: key("orders")} }},
		{"orders: registered(>1*1)", func() registry.Command { return first }},
		{"orders: deregistered(1*1>)", func() registry.Command { return registry.Deregister{Key: at} }},
		{"made: edited", func() registry.Command { return registry.ServiceCreate{Key: key("made")} }},
		{"", func() registry.Command { return registry.NoOp{} }},
	} {
		c := step.make()
		n.ok(c)
		if got := r.text(); got != step.want {
			t.Errorf("%T gives %q, want %q", c, got, step.want)
		}
	}
}

// Nodes cut the log into batches as it comes; the events are those of the entries.
func TestEvents_DoNotDependOnBatches(t *testing.T) {
	var texts [2]string
	for i, together := range []bool{false, true} {
		f := newFSM(t, Options{})
		s := newScript(t)
		r := &recorder{}
		f.ListenEvents(r)
		one := s.entry(register("a", "10.0.0.1", 80), register("b", "10.0.0.2", 80), register("a", "10.0.0.3", 80))
		two := s.entry(registry.Deregister{Key: spec("10.0.0.1", 80).In(key("a"))}, registry.NamespaceDelete{ID: "none"}, register("a", "10.0.0.1", 80))
		if together {
			f.ApplyBatch([]*raft.Log{one, two})
		} else {
			f.Apply(one)
			f.Apply(two)
		}
		for _, e := range r.events {
			texts[i] += fmt.Sprintf("%d %d;", e.Index, len(e.Changes))
		}
		texts[i] += r.text()
	}
	if texts[0] != texts[1] || !strings.Contains(texts[0], "a: registered(>1*1) registered(>3*1); b: registered(>2*1); a: deregistered(1*1>); a: registered(>1*1)") {
		t.Errorf("one by one: %s\ntogether:   %s", texts[0], texts[1])
	}
}

func TestEvents_RestoreIsAReset(t *testing.T) {
	n := newNode(t)
	n.ok(register("orders", "10.0.0.1", 80))
	file := save(t, n.FSM)
	f := newFSM(t, Options{})
	r := &recorder{}
	f.ListenEvents(r)
	load(t, f, file)
	if len(r.resets) != 1 || r.resets[0] != n.Applied() || len(r.events) != 0 {
		t.Errorf("%+v", r)
	}
	svc, at := f.ServiceAt(key("orders"))
	all, atAll := f.ServicesAt("public")
	if svc == nil || at != n.Applied() || atAll != at || len(all) != 1 || all[0] != svc {
		t.Errorf("%v at %d, %v at %d", svc, at, all, atAll)
	}
}

// discard is a listener that keeps nothing.
type discard struct{}

func (discard) EventsApplied(time.Time, []registry.ServiceEvent) {}
func (discard) EventsReset(uint64)                               {}

func BenchmarkApplyEvents(b *testing.B) {
	for _, listeners := range []int{0, 1} {
		b.Run(fmt.Sprintf("listeners=%d", listeners), func(b *testing.B) {
			n := newNode(b)
			for range listeners {
				n.ListenEvents(discard{})
			}
			const commands = 64
			entries := make([]*raft.Log, 2)
			for i := range entries {
				list := make([]registry.Command, commands)
				for k := range list {
					c := register(fmt.Sprintf("svc-%d", k), "10.0.0.1", 80)
					c.Spec.Weight = float64(i + 1)
					list[k] = c
				}
				entries[i] = n.entry(list...)
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				l := *entries[i%2]
				l.Index = n.index + uint64(i) + 1
				n.Apply(&l)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*commands), "ns/command")
		})
	}
}
