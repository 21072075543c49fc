package raftnode

import (
	"fmt"

	"github.com/rollcall-io/rollcall/raftnode/identity"
)

// identify finds out who this node is: the identity of the data directory, checked
// against the options and against the mark in the log store, or a fresh one.
func (n *Node) identify() error {
	id, found, err := identity.Load(n.opts.DataDir)
	if err != nil {
		return err
	}
	mark, err := n.store.Incarnation()
	if err != nil {
		return err
	}
	has, err := n.store.HasState()
	if err != nil {
		return err
	}
	if id, err = n.chooseIdentity(id, found, mark, has); err != nil {
		return err
	}
	if err := identity.Save(n.opts.DataDir, id); err != nil {
		return err
	}
	n.ident, n.id, n.incarnation = id, id.Node, id.Incarnation
	open, err := n.foundingNeedsOthers()
	if err != nil {
		return err
	}
	n.decided.Store(has && !open)
	return nil
}

// chooseIdentity is the identity kept in the directory, if it fits the options, the mark
// in the log store and whether there is Raft state; else a fresh one or an error.
func (n *Node) chooseIdentity(id identity.Identity, found bool, mark string, has bool) (identity.Identity, error) {
	switch {
	case !found && (has || mark != ""):
		return id, fmt.Errorf("data directory %s has raft state but no identity file", n.opts.DataDir)
	case !found:
		id = identity.Identity{Format: identity.Format, Node: n.opts.NodeID, Incarnation: identity.NewIncarnation()}
		if id.Node == "" {
			id.Node = identity.NewNode()
		}
	case n.opts.NodeID != "" && n.opts.NodeID != id.Node:
		return id, fmt.Errorf("data directory %s belongs to node %s, not to %s", n.opts.DataDir, id.Node, n.opts.NodeID)
	case mark != "" && mark != id.Incarnation:
		return id, fmt.Errorf("data directory %s is mixed: identity of incarnation %s, raft state of %s", n.opts.DataDir, id.Incarnation, mark)
	case id.Started && mark == "":
		// The Raft state was lost, and with it the votes given: a new incarnation, which
		// joins and never forms a cluster.
		if !n.opts.clustered() {
			return id, fmt.Errorf("data directory %s lost its raft state, and there is no other node to get it from", n.opts.DataDir)
		}
		n.log.Warn("raft state is gone, joining anew", "node", id.Node, "cluster", id.Cluster)
		id.Incarnation, id.Started = identity.NewIncarnation(), false
	}
	return id, nil
}

// settle marks store and identity before Raft runs for the first time.
func (n *Node) settle() error {
	n.decided.Store(true)
	if err := n.store.SetIncarnation(n.incarnation); err != nil {
		return err
	}
	n.identMu.Lock()
	defer n.identMu.Unlock()
	if n.ident.Started {
		return nil
	}
	n.ident.Started = true
	return identity.Save(n.opts.DataDir, n.ident)
}
