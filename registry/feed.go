package registry

import "time"

// TaskKind says what a ChangeTask asks of a listener.
type TaskKind uint8

// The kinds of tasks.
const (
	// TaskChange: look at the service, something that a client can see changed.
	TaskChange TaskKind = 1
	// TaskDelete: the service is gone.
	TaskDelete TaskKind = 2
	// TaskResync: tasks were lost or all state was replaced; look at everything.
	TaskResync TaskKind = 3
)

// ChangeTask is what the change feed hands to its listeners. Tasks of one service are
// merged while they wait, so a listener works from the service's current value, which it
// reads itself, and never counts tasks.
type ChangeTask struct {
	Kind TaskKind
	// Key is the service, empty in a TaskResync.
	Key ServiceKey
	// Revision is the index of the newest change that the task stands for: of a
	// TaskChange the service's revision when the task was handed out, of a TaskDelete the
	// index of the deletion, of a TaskResync the applied index.
	Revision uint64
	// Since is when this node applied the oldest change that the task stands for: for
	// metrics, by this node's own clock.
	Since time.Time
}
