package fsm

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/rollcall-io/rollcall/registry"
)

func (m *model) String() string {
	var lines []string
	for key, in := range m.instances {
		lines = append(lines, fmt.Sprintf("%s %+v", key, in))
	}
	for k, manual := range m.manual {
		lines = append(lines, fmt.Sprintf("%s manual %t revision %d", k, manual, m.revision[k]))
	}
	for key, until := range m.tombs {
		if until > m.now {
			lines = append(lines, fmt.Sprintf("%s buried until %d", key, until))
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// asModel is an FSM's state in the model's words.
func asModel(f *FSM, now int64) *model {
	m := newModel()
	m.now = now
	for _, ns := range f.NamespaceIDs() {
		for _, svc := range f.Services(ns) {
			m.manual[svc.Key], m.revision[svc.Key] = svc.Manual, svc.Revision
			for _, in := range svc.Instances() {
				m.instances[in.Address.In(svc.Key)] = *in
			}
		}
	}
	for _, t := range sortTombstones(f.state.tombs.copies()) {
		m.tombs[t.key] = t.until
	}
	return m
}

func TestApply_AgreesWithTheModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		f, s, m := New(Options{}), newScript(t), newModel()
		defer f.Close()
		for range rapid.IntRange(1, 40).Draw(rt, "commands") {
			c := genInstanceCommand(rt)
			if rapid.IntRange(0, 3).Draw(rt, "leader") == 0 {
				c = genLeaderCommand(rt, f, s)
			}
			unchanged := false
			if r, is := c.(registry.Register); is {
				_, unchanged = f.Unchanged(r)
			}
			l := s.entry(c)
			m.index, m.term, m.now = l.Index, l.Term, s.time
			r := f.Apply(l).([]registry.Result)[0]
			got := verdict{changed: r.Changed}
			if r.Err != nil {
				got.code = r.Err.Code
			}
			if want := m.apply(c); got != want || (unchanged && got != verdict{}) {
				rt.Fatalf("%T %+v: %+v (%v), want %+v; called unchanged before: %t", c, c, got, r.Err, want, unchanged)
			}
			if got, want := asModel(f, s.time).String(), m.String(); got != want {
				rt.Fatalf("after %T %+v:\n%s\nwant\n%s", c, c, got, want)
			}
		}
	})
}
