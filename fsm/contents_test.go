package fsm

import (
	"fmt"
	"strings"
	"testing"
)

// contents is everything in the state that an entry's index and time alone do not
// change, as text.
func contents(tb testing.TB, f *FSM) string {
	tb.Helper()
	f.mu.RLock()
	defer f.mu.RUnlock()
	var b strings.Builder
	g := f.state.globals
	fmt.Fprintf(&b, "cluster %q level %d term %d deleted %d\n", g.ClusterID, g.Level, g.TermStart, g.DeletedStamp)
	fmt.Fprintf(&b, "switches %+v\nnamespaces %+v known %q\n", f.state.switches, f.state.records(), f.state.reg.Namespaces())
	fmt.Fprintf(&b, "accounts %+v\n", *f.state.accounts)
	for _, ns := range f.state.reg.Namespaces() {
		for _, s := range f.state.reg.Services(ns) {
			settings := *s
			fmt.Fprintf(&b, "service %s %+v manual %t clusters %+v revision %d stamp %d empty since %d\n", s.Key,
				settings.ServiceSpec, s.Manual, s.Clusters, s.Revision, s.Stamp, s.EmptySince)
			for _, in := range s.Instances() {
				fmt.Fprintf(&b, "  %+v\n", *in)
			}
		}
	}
	for _, t := range sortTombstones(f.state.tombs.copies()) {
		fmt.Fprintf(&b, "tombstone %s until %d\n", t.key, t.until)
	}
	return b.String()
}
