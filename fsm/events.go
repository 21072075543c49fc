package fsm

import (
	"time"

	"github.com/rollcall-io/rollcall/internal/wire"
	"github.com/rollcall-io/rollcall/registry"
)

// EventListener is told of every visible change, in log order and without a gap, inside
// Apply: its methods run under the state's lock, so they must not block nor call the FSM.
type EventListener interface {
	// EventsApplied reports the events of whole entries, in ascending order of indexes. The
	// slice is the listener's to keep. at is now, by this node's clock.
	EventsApplied(at time.Time, events []registry.ServiceEvent)
	// EventsReset reports that all state was replaced by that of a later index.
	EventsReset(applied uint64)
}

// ListenEvents adds a listener of events. Events cost Apply a little for each visible
// change, and nothing without a listener.
func (f *FSM) ListenEvents(l EventListener) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.events = append(f.events, l)
}

// ServiceAt is the service of a key, nil when there is none, and the applied index at
// which it was so: the events of all later indexes come after it.
func (f *FSM) ServiceAt(k registry.ServiceKey) (*registry.Service, uint64) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.state.reg.Service(k), f.state.index
}

// ServicesAt is ServiceAt for all services of a namespace, sorted by grouped name.
func (f *FSM) ServicesAt(namespace string) ([]*registry.Service, uint64) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.state.reg.Services(namespace), f.state.index
}

// record notes a visible change of an instance for the entry's event.
func (t *tx) record(e *edit, before, after *registry.Instance) {
	if len(t.f.events) == 0 {
		return
	}
	e.changes = append(e.changes, registry.InstanceEvent{Reason: reasonOf(t.kind, before, after), Before: before, After: after})
}

// reasonOf follows from the kind of command and what it did.
func reasonOf(kind wire.Kind, before, after *registry.Instance) registry.Reason {
	switch {
	case after == nil && kind == wire.KindEvictBatch:
		return registry.ReasonExpired
	case after == nil:
		return registry.ReasonDeregistered
	case before == nil:
		return registry.ReasonRegistered
	case onlyHealth(before, after) && after.Healthy:
		return registry.ReasonRecovered
	case onlyHealth(before, after):
		return registry.ReasonUnhealthy
	case kind == wire.KindPatch || kind == wire.KindMetadataBatch:
		return registry.ReasonEdited
	}
	return registry.ReasonUpdated
}

// onlyHealth tells whether health is all that differs.
func onlyHealth(before, after *registry.Instance) bool {
	if before.Healthy == after.Healthy {
		return false
	}
	spec := before.Spec
	spec.Healthy = after.Healthy
	return spec.Equal(after.Spec)
}

// emit makes an event of what the entry changed of a service.
func (t *tx) emit(e *edit) {
	edited := e.edited
	e.edited = false
	if len(t.f.events) == 0 || len(e.changes) == 0 && !edited {
		return
	}
	t.events = append(t.events, registry.ServiceEvent{
		Service: e.key, Index: t.index, Changes: e.changes, Edited: edited, Deleted: e.draft == nil,
	})
	e.changes = nil
}

// tellEvents hands the events of a batch to the listeners.
func (t *tx) tellEvents() {
	if len(t.events) == 0 {
		return
	}
	at := wallClock()
	for i, l := range t.f.events {
		events := t.events
		if i > 0 {
			events = append([]registry.ServiceEvent(nil), events...)
		}
		l.EventsApplied(at, events)
	}
	t.events = nil
}
