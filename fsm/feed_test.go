package fsm

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rollcall-io/rollcall/registry"
)

// hearer records tasks and can be held up.
type hearer struct {
	mu    sync.Mutex
	tasks []registry.ChangeTask
	hold  chan struct{} // when set, each call takes one
	panic bool
}

func (h *hearer) ServiceChanged(task registry.ChangeTask) {
	if h.hold != nil {
		<-h.hold
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.tasks = append(h.tasks, task)
	if h.panic {
		panic("listener at fault")
	}
}

func (h *hearer) heard() []registry.ChangeTask {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]registry.ChangeTask(nil), h.tasks...)
}

// await polls until the condition holds.
func await(tb testing.TB, what string, holds func() bool) {
	tb.Helper()
	for deadline := time.Now().Add(5 * time.Second); !holds(); {
		if time.Now().After(deadline) {
			tb.Fatalf("still not: %s", what)
		}
		select {
		case <-time.After(time.Millisecond):
		case <-tb.Context().Done():
		}
	}
}

func TestFeed_MergesAndHandsOutCurrentValues(t *testing.T) {
	n := newNode(t)
	h := &hearer{hold: make(chan struct{})}
	n.Listen(h)
	n.ok(register("first", "10.0.0.1", 80))
	await(t, "the notifier is busy", func() bool { depth, _ := n.feed.load(); return depth == 0 })

	c := register("orders", "10.0.0.1", 80)
	n.ok(c)
	n.ok(c) // identical: nothing to tell
	c.Spec.Weight = 2
	last := n.ok(c)
	n.ok(register("gone", "10.0.0.1", 80))
	n.ok(registry.Deregister{Key: spec("10.0.0.1", 80).In(key("gone"))})
	deleted := n.ok(registry.ServiceDelete{Key: key("gone")})
	if depth, age := n.feed.load(); depth != 2 || age < 0 {
		t.Errorf("depth %d, age %s", depth, age)
	}
	close(h.hold)
	await(t, "three tasks", func() bool { return len(h.heard()) == 3 })
	want := []registry.ChangeTask{
		{Kind: registry.TaskChange, Key: key("first"), Revision: 11},
		{Kind: registry.TaskChange, Key: key("orders"), Revision: last.Index},
		{Kind: registry.TaskDelete, Key: key("gone"), Revision: deleted.Index},
	}
	for i, task := range h.heard() {
		if task.Since.IsZero() || time.Since(task.Since) > time.Minute {
			t.Errorf("task %d was applied at %s", i, task.Since)
		}
		task.Since = time.Time{}
		if task != want[i] {
			t.Errorf("task %d is %+v, want %+v", i, task, want[i])
		}
	}
}

func TestFeed_OverflowBecomesOneResync(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	n := &node{newFSM(t, Options{FeedCapacity: 2, Metrics: reg}), newScript(t)}
	h := &hearer{hold: make(chan struct{})}
	n.Listen(h)
	n.ok(register("first", "10.0.0.1", 80))
	await(t, "the notifier is busy", func() bool { depth, _ := n.feed.load(); return depth == 0 })
	for i := range 4 {
		n.ok(register(fmt.Sprintf("s%d", i), "10.0.0.1", 80))
	}
	close(h.hold)
	await(t, "three tasks", func() bool { return len(h.heard()) == 3 })
	heard := h.heard()
	if heard[1].Kind != registry.TaskResync || heard[1].Revision != n.Applied() || heard[2].Key != key("s3") {
		t.Errorf("%+v", heard)
	}
	if dropped := metric(t, reg, "rollcall_fsm_feed_dropped_total"); dropped != 3 {
		t.Errorf("%v tasks counted as dropped, want 3", dropped)
	}
}

func TestFeed_SurvivesAPanic(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	n := &node{newFSM(t, Options{Metrics: reg}), newScript(t)}
	bad, good := &hearer{panic: true}, &hearer{}
	n.Listen(bad)
	n.Listen(good)
	n.ok(register("a", "10.0.0.1", 80))
	n.ok(register("b", "10.0.0.1", 80))
	await(t, "both told twice", func() bool { return len(good.heard()) == 2 && len(bad.heard()) == 2 })
	if got := metric(t, reg, "rollcall_fsm_feed_listener_panics_total"); got != 2 {
		t.Errorf("%v panics counted, want 2", got)
	}
}

func TestFeed_RestoreAsksForAResync(t *testing.T) {
	n := newNode(t)
	n.ok(register("a", "10.0.0.1", 80))
	m := newFSM(t, Options{})
	h := &hearer{}
	m.Listen(h)
	load(t, m, save(t, n.FSM))
	await(t, "a resync", func() bool { return len(h.heard()) == 1 })
	if task := h.heard()[0]; task.Kind != registry.TaskResync || task.Revision != n.Applied() {
		t.Errorf("%+v", task)
	}
}

func TestClose_WaitsForTheListener(t *testing.T) {
	f := New(Options{})
	n := &node{f, newScript(t)}
	h := &hearer{hold: make(chan struct{})}
	f.Listen(h)
	n.ok(register("a", "10.0.0.1", 80))
	await(t, "the notifier is busy", func() bool { depth, _ := f.feed.load(); return depth == 0 })
	closed := make(chan struct{})
	go func() {
		f.Close()
		f.Close()
		close(closed)
	}()
	select {
	case <-closed:
		t.Error("closed while a listener is being called")
	default:
	}
	h.hold <- struct{}{}
	<-closed
	n.ok(register("b", "10.0.0.1", 80))
	if len(h.heard()) != 1 {
		t.Errorf("told after Close: %+v", h.heard())
	}
}
