package registry

// Lease is the replicated record that keeps one ephemeral instance: number, grant and
// timeouts. When it was last renewed is known to the leader alone and never replicated.
type Lease struct {
	LeaseRef
	Timeouts Timeouts
	// Key and Healthy are those of the instance that the lease keeps.
	Key     InstanceKey
	Healthy bool
}

// LeaseObserver is told of every change of a lease, inside Apply, in log order. Its
// methods run under the state's lock: they must not block and must not call back.
type LeaseObserver interface {
	// LeaseGranted reports a new lease or a new grant of a known number.
	LeaseGranted(l Lease)
	// LeaseFlipped reports that the health of the instance behind a lease changed.
	LeaseFlipped(ref LeaseRef, healthy bool)
	// LeaseReleased reports that the instance is gone and the number free.
	LeaseReleased(ref LeaseRef)
	// LeasesReset reports that all state was replaced by a snapshot: forget everything;
	// a LeaseGranted for each lease follows.
	LeasesReset()
}

// Verdict is the leader's answer to one beat.
type Verdict uint8

// The verdicts.
const (
	// BeatRenewed: the lease is renewed, or the instance is persistent and needs none.
	BeatRenewed Verdict = 1
	// BeatUnknown: no such instance. A light beat is answered 20404; a full beat registers.
	BeatUnknown Verdict = 2
	// BeatTombstoned: deregistered a moment ago. Answered as renewed, without effect.
	BeatTombstoned Verdict = 3
	// BeatPending: an eviction of the lease is in flight; ask again.
	BeatPending Verdict = 4
	// BeatStale: the lease number was granted to another meanwhile; ask again by key.
	BeatStale Verdict = 5
)

// BeatBatch is what a follower collected for the leader.
type BeatBatch struct {
	// Node is the sender. Applied is its applied index when it looked the leases up: the
	// leader handles the batch once its own applied index has reached it.
	Node    string
	Applied uint64
	// Leases are beats of instances that the sender knows; Keys those that it doesn't.
	Leases []LeaseRef
	Keys   []InstanceKey
}

// BeatAnswer holds a verdict for each beat of a batch, in its order.
type BeatAnswer struct {
	Leases []Verdict
	Keys   []Verdict
	// Silent lists, at most once a second, the leases whose beat is late, so that a new
	// leader need not start them fresh; nil when not due.
	Silent []SilentLease
	// HasSilent tells an empty list from one that is not due.
	HasSilent bool
	// Term is the leader's, 0 from a node that does not tell.
	Term uint64
}

// MaxSilentLeases bounds every list of silent leases that travels between nodes, to some
// 64 KiB.
const MaxSilentLeases = 3000

// SilentLease is a lease without beats and for how long, in milliseconds. An Age of 0 says
// that it was renewed.
type SilentLease struct {
	LeaseRef
	Age uint32
	// Given is how much of that time, in milliseconds, was spent under leaders that took the
	// lease over silent: it counts towards the grace that is owed before anything is
	// proposed about the lease. Never more than Age.
	Given uint32
}

// SilentNotes is what one node knows of silent leases.
type SilentNotes struct {
	// Term is that of the leader who made the list, Age how old the list is in milliseconds.
	Term uint64
	Age  uint32
	// Leases are the silent ones when the list was made, and with an age of 0 those of them
	// of which the node knows a later beat.
	Leases []SilentLease
}

// Beat is one proof of life as a client sent it. Full is the instance that a full beat
// describes, nil for a light one.
type Beat struct {
	Key  InstanceKey
	Full *Spec
}

// BeatReply is what the client is told.
type BeatReply struct {
	// Known is false when a light beat named an unknown instance: code 20404.
	Known bool
	// Interval is the time to the next beat in milliseconds.
	Interval uint32
	// LightEnabled tells the client that light beats will do.
	LightEnabled bool
}
