package registry

import (
	"strings"
	"time"
)

// Reason says why something that clients see has changed.
type Reason uint8

// The reasons. They follow from the command that made the change.
const (
	ReasonRegistered   Reason = 1 // a registration of an instance that was not there
	ReasonUpdated      Reason = 2 // a registration or update of one that was
	ReasonUnhealthy    Reason = 3 // beats or probes failed, or health was set by hand
	ReasonRecovered    Reason = 4
	ReasonExpired      Reason = 5 // no beat for the delete timeout
	ReasonDeregistered Reason = 6
	ReasonEdited       Reason = 7 // fields patched, metadata merged, settings of the service changed
)

var reasonNames = [...]string{"", "registered", "updated", "unhealthy", "recovered", "expired", "deregistered", "edited"}

// String is the reason's name on the wire.
func (r Reason) String() string {
	if int(r) < len(reasonNames) {
		return reasonNames[r]
	}
	return ""
}

// InstanceEvent is one change of one instance. Both values are absolute and immutable;
// Before is nil for one that came, After for one that left.
type InstanceEvent struct {
	Reason Reason
	Before *Instance
	After  *Instance
}

// ServiceEvent is what one log entry changed of one service, or several entries when
// they were merged for delivery.
type ServiceEvent struct {
	Service ServiceKey
	// Index is that of the entry, of the last one after merging.
	Index uint64
	// Changes are in the order of their commands. An instance may be there twice until
	// events are merged.
	Changes []InstanceEvent
	// Edited tells that settings of the service or its clusters changed, or that it was
	// made by hand; Deleted that it is gone.
	Edited  bool
	Deleted bool
}

// Watch says which services are watched and from where on.
type Watch struct {
	Namespace string
	// Group is the group, AnyGroup all of them.
	Group string
	// Name is the service's name, or the beginning of the names when Prefix is set.
	Name   string
	Prefix bool
	// After is the index that the watcher has seen. Without Resume it has seen nothing.
	After  uint64
	Resume bool
}

// AnyGroup as the group of a watch means all groups.
const AnyGroup = "*"

// Key is the service of a watch of one service, false for a watch of many.
func (w Watch) Key() (ServiceKey, bool) {
	return NewServiceKey(w.Namespace, w.Group, w.Name), !w.Prefix && w.Group != AnyGroup
}

// Matches tells whether a service is watched.
func (w Watch) Matches(k ServiceKey) bool {
	if k.Namespace != w.Namespace || w.Group != AnyGroup && k.Group() != w.Group {
		return false
	}
	if w.Prefix {
		return strings.HasPrefix(k.Name(), w.Name)
	}
	return k.Name() == w.Name
}

// WatchBatch is what a watcher is given at once: everything up to Index that it had not
// seen.
type WatchBatch struct {
	Index uint64
	// Reset tells that Services is the full state at Index: what was known before counts
	// no more. Otherwise Events holds at most one event for each service.
	Reset    bool
	Services []*Service
	Events   []ServiceEvent
	// Since is when this node applied the oldest of the changes.
	Since time.Time
}
