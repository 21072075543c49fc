package health

import (
	"context"
	"testing"
	"time"

	"github.com/rollcall-io/rollcall/health/probe"
	"github.com/rollcall-io/rollcall/registry"
)

// refusing is a checker to which every host says no.
type refusing struct{}

func (refusing) Check(context.Context, string, registry.Checker) probe.Outcome { return probe.Refused }

func TestProbes_ReachTheLogAndFollowTheFeed(t *testing.T) {
	inWorld(t, func(w *world, n1, n2, _ *node) {
		spec := specOf(address(1))
		spec.Ephemeral = false
		key := w.register(spec)
		n2.keeper.ServiceChanged(registry.ChangeTask{Kind: registry.TaskChange, Key: testService}) // no leader: no matter
		time.Sleep(5 * time.Second)
		if got := w.health(key); got != "up" {
			t.Fatalf("%s: nobody told of the change", got)
		}
		n1.keeper.ServiceChanged(registry.ChangeTask{Kind: registry.TaskChange, Key: testService})
		time.Sleep(3 * time.Second)
		if got := w.health(key); got != "down" {
			t.Errorf("%s after a refused probe", got)
		}
		spec.Address = address(2)
		other := w.register(spec)
		n1.keeper.ServiceChanged(registry.ChangeTask{Kind: registry.TaskResync})
		time.Sleep(3 * time.Second)
		if got := w.health(other); got != "down" {
			t.Errorf("%s after a resync and a refused probe", got)
		}
		for _, l := range w.commands() {
			if b, ok := l.command.(registry.ProbeBatch); !ok || b.Term != 1 {
				t.Errorf("unexpected %#v", l.command)
			}
		}
		time.Sleep(time.Hour)
		if got := w.health(key); got != "down" {
			t.Errorf("%s: persistent instances never expire", got)
		}
	}, func(o *Options) { o.Probe.Checkers = map[string]probe.Checker{registry.CheckTCP: refusing{}} })
}
