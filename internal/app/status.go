package app

import "github.com/rollcall-io/rollcall/registry"

// status puts together what the parts know of this node.
func (n *Node) status() registry.NodeStatus {
	r, k := n.raft.Status(), n.keeper.Status()
	s := registry.NodeStatus{
		ID: r.ID, ClusterID: r.ClusterID, Version: n.opts.Version, State: r.State, Leader: r.Leader, Term: r.Term,
		Applied: r.Applied, Snapshot: r.SnapshotIndex, LagMs: r.LagMs, FreeDisk: r.FreeDisk, Members: r.Members,
		Leases: registry.LeaseStatus{
			Leading: k.Leading, Total: k.Leases, Unhealthy: k.Unhealthy, Silent: k.Silent,
			Storm: k.Storm, Held: k.StormHeld, CompensatedMs: k.Compensated.Milliseconds(), Kept: k.KeptBeats,
		},
	}
	if err := n.raft.Ready(); err != nil {
		s.NotReady = err.Error()
	}
	_, s.Diverged = n.state.Diverged()
	s.Services, s.Instances = n.state.Counts()
	return s
}
