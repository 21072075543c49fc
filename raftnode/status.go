package raftnode

import (
	"time"

	"github.com/hashicorp/raft"

	"github.com/rollcall-io/rollcall/registry"
)

// Status is what an operator wants to know of a node. It is a copy.
type Status struct {
	ID, Incarnation, ClusterID string
	Address                    string
	// State is Follower, Candidate, Leader or Shutdown; Forming before Raft runs.
	State  string
	Term   uint64
	Leader string
	Voter  bool
	// LastIndex and CommitIndex are Raft's, Applied is the state machine's,
	// SnapshotIndex that of the newest snapshot.
	LastIndex, CommitIndex, Applied, SnapshotIndex uint64
	// LastContact is the time since a leader was heard, 0 on the leader.
	LastContact time.Duration
	LagMs       int64
	FreeDisk    uint64
	Members     []registry.Member
}

// Status collects the node's status from memory.
func (n *Node) Status() Status {
	v := n.tracker.load()
	s := Status{
		ID: n.id, Incarnation: n.incarnation, ClusterID: n.clusterID(), Address: n.advertise,
		State: "Forming", Leader: v.id, Applied: n.fsm.Applied(), LagMs: n.LagMs(),
		SnapshotIndex: n.store.Snapshots.LastIndex(), FreeDisk: n.disk.free.Load(), Members: n.Members(),
	}
	if r := n.raft.Load(); r != nil {
		s.State, s.Term = r.State().String(), r.CurrentTerm()
		s.LastIndex, s.CommitIndex = r.LastIndex(), r.CommitIndex()
		if contact := r.LastContact(); !v.self && !contact.IsZero() {
			s.LastContact = time.Since(contact)
		}
	}
	me, known := find(n.servers(), n.serverID())
	s.Voter = known && me.Suffrage == raft.Voter
	return s
}

// Members are the nodes of the configuration as this node sees them, in its order.
func (n *Node) Members() []registry.Member {
	v := n.tracker.load()
	var members []registry.Member
	for _, s := range n.servers() {
		m := registry.Member{
			ID: nodeOf(s.ID), PeerAddress: string(s.Address), Leader: nodeOf(s.ID) == v.id,
			Voter: s.Suffrage == raft.Voter,
		}
		if s.ID == n.serverID() {
			m.Address, m.State = n.opts.HTTPAddr, registry.MemberStarting
			if n.Ready() == nil {
				m.State = registry.MemberUp
			}
		} else {
			m.Address, m.State = n.heardOf(m.ID)
		}
		members = append(members, m)
	}
	return members
}

// heardOf is another node's HTTP address and state by its last word.
func (n *Node) heardOf(id string) (http, state string) {
	n.progress.mu.Lock()
	p, known := n.progress.peers[id]
	n.progress.mu.Unlock()
	age := time.Since(p.heard)
	switch {
	case !known || age > maxLag:
		return p.http, registry.MemberDown
	case age > 3*pollPeer:
		return p.http, registry.MemberSuspicious
	case !p.ready:
		return p.http, registry.MemberStarting
	}
	return p.http, registry.MemberUp
}
