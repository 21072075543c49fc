package app

import "github.com/rollcall-io/rollcall/raftnode"

// cluster is a raftnode.Node under the names that httpapi uses.
type cluster struct{ *raftnode.Node }

// NodeID is the id of this node.
func (c cluster) NodeID() string { return c.ID() }
