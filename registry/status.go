package registry

// NodeStatus is what an operator wants to know of one node: where it stands in the
// cluster and how the leases are. It is a copy.
type NodeStatus struct {
	ID        string
	ClusterID string
	Version   string
	// NotReady is why clients should not use the node now, empty when they may.
	NotReady string
	// State is the node's role in Raft: Follower, Candidate, Leader, Shutdown, or Forming
	// before Raft runs. Leader is the id of the leader, empty when none is known.
	State  string
	Leader string
	Term   uint64
	// Applied is the index that the state stands at, Snapshot that of the newest snapshot.
	Applied  uint64
	Snapshot uint64
	LagMs    int64
	// FreeDisk is what is free in the data directory, in bytes; 0 when not known.
	FreeDisk uint64
	// Diverged is true once the node's state was found to differ from the leader's.
	Diverged  bool
	Services  int
	Instances int
	Members   []Member
	Leases    LeaseStatus
}

// LeaseStatus is the state of the leases, as the leader knows it; on other nodes all but
// Kept is zero.
type LeaseStatus struct {
	Leading bool
	// Total are the leases in force, Unhealthy those whose instance is unhealthy, Silent
	// those whose beat is late.
	Total     int
	Unhealthy int
	Silent    int
	// Storm tells whether so many went silent at once that evictions wait one more delete
	// timeout; Held is how many wait.
	Storm bool
	Held  int
	// CompensatedMs is the time that pauses of the process took out of all leases.
	CompensatedMs int64
	// Kept are the beats that this node holds for the next leader.
	Kept int
}
