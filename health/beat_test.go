package health

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/rollcall-io/rollcall/registry"
)

func (n *node) light(key registry.InstanceKey) (registry.BeatReply, error) {
	return n.keeper.Beat(context.Background(), registry.Beat{Key: key})
}

func (n *node) full(s registry.Spec) (registry.BeatReply, error) {
	return n.keeper.Beat(context.Background(), registry.Beat{Key: s.Address.In(testService), Full: &s})
}

func TestBeat_Outcomes(t *testing.T) {
	inWorld(t, func(w *world, n1, n2, _ *node) {
		persistent := specOf(address(2))
		persistent.Ephemeral = false
		for _, n := range []*node{n1, n2} {
			gone := w.register(specOf(address(3)))
			w.apply("client", 0, registry.Deregister{Key: gone})
			w.register(specOf(address(1)))
			w.register(persistent)
			for _, row := range []struct {
				name    string
				address int
				full    bool
				known   bool
			}{
				{"known, light", 1, false, true},
				{"known, full", 1, true, true},
				{"persistent, light", 2, false, true},
				{"persistent, full", 2, true, true},
				{"deregistered a moment ago, light", 3, false, true},
				{"deregistered a moment ago, full", 3, true, true},
				{"unknown, light", 4, false, false},
			} {
				beat := registry.Beat{Key: address(row.address).In(testService)}
				if row.full {
					spec := specOf(address(row.address))
					beat.Full = &spec
				}
				reply, err := n.keeper.Beat(context.Background(), beat)
				if err != nil || reply.Known != row.known || reply.Interval != 5000 || reply.LightEnabled != row.known {
					t.Errorf("%s on %s: %+v, %v", row.name, n.id, reply, err)
				}
			}
			if got := w.health(gone); got != "gone" {
				t.Errorf("a beat brought a deregistered instance back")
			}
			if in := w.Instance(persistent.Address.In(testService)); in.Ephemeral {
				t.Error("a beat made a persistent instance ephemeral")
			}
		}
	})
}

func TestBeat_FullRegistersTheUnknown(t *testing.T) {
	inWorld(t, func(w *world, n1, n2, _ *node) {
		for i, n := range []*node{n1, n2} {
			spec := specOf(address(i), registry.Pair{Key: "v", Value: "3"})
			reply, err := n.full(spec)
			if err != nil || !reply.Known {
				t.Fatalf("full beat on %s: %+v, %v", n.id, reply, err)
			}
			if in := w.Instance(spec.Address.In(testService)); in == nil || !in.Spec.Equal(spec) {
				t.Errorf("registered on %s: %+v", n.id, in)
			}
		}
	})
}

func TestBeat_Interval(t *testing.T) {
	inWorld(t, func(w *world, n1, _, _ *node) {
		w.set(func(s *registry.Switches) { s.ClientBeatInterval = 7000 })
		for i, row := range []struct {
			value string
			want  uint32
		}{
			{"", 7000}, {"3000", 3000}, {"5000", 5000}, {"x", 7000}, {"0", 7000},
			{"99999999999999999999", registry.MaxTimeout},
		} {
			var pairs []registry.Pair
			if row.value != "" {
				pairs = []registry.Pair{{Key: registry.KeyBeatInterval, Value: row.value}}
			}
			key := w.register(specOf(address(i), pairs...))
			if reply, err := n1.light(key); err != nil || reply.Interval != row.want {
				t.Errorf("metadata %q: interval %d, %v, want %d", row.value, reply.Interval, err, row.want)
			}
		}
	})
}

func TestBeat_RightAfterRegistrationOnALaggingNode(t *testing.T) {
	inWorld(t, func(w *world, _, n2, _ *node) {
		key := w.register(specOf(address(1)))
		w.with(func() { n2.sees = func(*registry.Instance) *registry.Instance { return nil } })
		if reply, err := n2.light(key); err != nil || !reply.Known {
			t.Errorf("beat by key: %+v, %v", reply, err)
		}
		w.with(func() {
			n2.sees = func(in *registry.Instance) *registry.Instance {
				old := *in
				old.Grant.Index--
				return &old
			}
		})
		if reply, err := n2.light(key); err != nil || !reply.Known {
			t.Errorf("beat with an outdated grant: %+v, %v", reply, err)
		}
	})
}

// A node that is behind told clients the default interval, so that one with a short
// timeout beat too late and was flipped.
func TestBeat_LaggingNodeNamesTheInstancesOwnInterval(t *testing.T) {
	inWorld(t, func(w *world, _, n2, _ *node) {
		spec := specOf(address(1), registry.Pair{Key: registry.KeyBeatInterval, Value: "1000"})
		key := w.register(spec)
		w.with(func() { n2.sees = func(*registry.Instance) *registry.Instance { return nil } })
		if reply, err := n2.full(spec); err != nil || !reply.Known || reply.Interval != 1000 {
			t.Errorf("full beat: %+v, %v", reply, err)
		}
		w.apply("client", 0, registry.Deregister{Key: key})
		if reply, err := n2.full(spec); err != nil || !reply.Known || reply.Interval != 1000 {
			t.Errorf("full beat of an instance removed a moment ago: %+v, %v", reply, err)
		}
		w.apply("client", 0, registry.Register{Service: testService, Spec: spec})
		go func() { // the node catches up while the beat waits; the world's clock is virtual
			time.Sleep(300 * time.Millisecond)
			w.with(func() { n2.sees = nil })
		}()
		if reply, err := n2.light(key); err != nil || !reply.Known || reply.Interval != 1000 {
			t.Errorf("light beat: %+v, %v", reply, err)
		}
	})
}

func TestHandleBeats_WaitsForTheSendersIndex(t *testing.T) {
	inWorld(t, func(w *world, n1, _, _ *node) {
		key := w.register(specOf(address(1)))
		batch := registry.BeatBatch{Node: "n2", Applied: w.Applied() + 1, Keys: []registry.InstanceKey{key}}
		if _, err := n1.keeper.HandleBeats(context.Background(), batch); !errors.Is(err, registry.ErrTimeout) {
			t.Errorf("handled without having applied it: %v", err)
		}
		go w.apply("client", 0, registry.NoOp{})
		if _, err := n1.keeper.HandleBeats(context.Background(), batch); err != nil {
			t.Errorf("after applying: %v", err)
		}
	})
}

func TestHandleBeats_OnlyOnTheLeader(t *testing.T) {
	inWorld(t, func(_ *world, _, n2, _ *node) {
		if _, err := n2.keeper.HandleBeats(context.Background(), registry.BeatBatch{}); !errors.Is(err, registry.ErrNotLeader) {
			t.Errorf("got %v", err)
		}
	})
}

func TestHandleBeats_ListsTheSilentAgainAndAgain(t *testing.T) {
	inWorld(t, func(w *world, n1, _, _ *node) {
		w.register(specOf(address(1)))
		time.Sleep(6500 * time.Millisecond)
		batch := registry.BeatBatch{Node: "n9"}
		lists := 0
		for range 20 {
			a, err := n1.keeper.HandleBeats(context.Background(), batch)
			if err != nil {
				t.Fatal(err)
			}
			if a.HasSilent {
				if lists++; len(a.Silent) != 1 || a.Silent[0].Age < 6500 || a.Silent[0].Age > 9000 {
					t.Errorf("list %+v", a.Silent)
				}
			}
			time.Sleep(100 * time.Millisecond)
		}
		if lists != 5 {
			t.Errorf("%d lists in two seconds, want 5", lists)
		}
	})
}

func TestRenew(t *testing.T) {
	inWorld(t, func(w *world, n1, n2, _ *node) {
		key := w.register(specOf(address(1)))
		ref := refOf(w.Instance(key))
		if !n1.keeper.Renew(ref) {
			t.Error("refused for a healthy lease")
		}
		if n2.keeper.Renew(ref) {
			t.Error("taken on a follower")
		}
		old := ref
		old.Grant.Index--
		if n1.keeper.Renew(old) || n1.keeper.Renew(registry.LeaseRef{Number: 1 << 30}) {
			t.Error("taken for a lease that is not in force")
		}
		for range 4 {
			time.Sleep(10 * time.Second)
			n1.keeper.Renew(ref)
		}
		time.Sleep(16 * time.Second)
		if got := w.health(key); got != "down" || n1.keeper.Renew(ref) {
			t.Errorf("%s; taken for an unhealthy instance", got)
		}
		tried := 0
		w.with(func() {
			w.before = func(c registry.Command) {
				if tried++; n1.keeper.Renew(ref) {
					t.Errorf("taken with %T in flight", c)
				}
			}
		})
		time.Sleep(31 * time.Second)
		if got := w.health(key); got != "gone" || tried != 1 {
			t.Errorf("%s after %d proposals", got, tried)
		}
	})
}

func TestMetrics(t *testing.T) {
	inWorld(t, func(w *world, n1, _, _ *node) {
		w.register(specOf(address(1)))
		n1.beat(address(1).In(testService))
		_, _ = n1.light(address(2).In(testService))
		time.Sleep(16 * time.Second)
		for _, row := range []struct {
			name, label string
			want        float64
		}{
			{"rollcall_health_beats_total", "known", 1},
			{"rollcall_health_beats_total", "unknown", 1},
			{"rollcall_health_beats_total", "refused", 0},
			{"rollcall_health_leases", "", 1},
			{"rollcall_health_unhealthy", "", 1},
			{"rollcall_health_silent", "", 1},
			{"rollcall_health_flips_total", "unhealthy", 1},
			{"rollcall_health_takeovers_total", "", 1},
			{"rollcall_health_pause_compensation_seconds_total", "", 0},
		} {
			if got := n1.metric(row.name, row.label); got != row.want {
				t.Errorf("%s %s: %v, want %v", row.name, row.label, got, row.want)
			}
		}
	})
}

func TestOptions_Validate(t *testing.T) {
	_, err := New(Options{ScanInterval: time.Hour})
	for _, part := range []string{"Node", "State and Cluster", "Logger", "1h0m0s"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("error does not name %s: %v", part, err)
		}
	}
}
