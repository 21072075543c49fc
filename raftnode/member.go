package raftnode

import (
	"strings"

	"github.com/hashicorp/raft"

	"github.com/rollcall-io/rollcall/raftnode/mux"
)

// To Raft a member is its node id together with its incarnation. A node whose disk was
// wiped is so another server than before: nobody counts its vote under the old name,
// and connections that are meant for the old incarnation never reach the new one.
// Node ids have no slash, so the two parts come apart again.

func serverID(node, incarnation string) raft.ServerID {
	return raft.ServerID(node + "/" + incarnation)
}

func splitServerID(id raft.ServerID) (node, incarnation string) {
	node, incarnation, _ = strings.Cut(string(id), "/")
	return node, incarnation
}

func nodeOf(id raft.ServerID) string {
	node, _ := splitServerID(id)
	return node
}

func identityOf(id raft.ServerID) mux.Identity {
	node, incarnation := splitServerID(id)
	return mux.Identity{Node: node, Incarnation: incarnation}
}

// servers is the newest configuration that this node knows, perhaps not committed yet;
// nil before Raft runs.
func (n *Node) servers() []raft.Server {
	r := n.raft.Load()
	if r == nil {
		return nil
	}
	future := r.GetConfiguration()
	if future.Error() != nil {
		return nil
	}
	return future.Configuration().Servers
}

// find is the server of an id in a configuration.
func find(servers []raft.Server, id raft.ServerID) (raft.Server, bool) {
	for _, s := range servers {
		if s.ID == id {
			return s, true
		}
	}
	return raft.Server{}, false
}
