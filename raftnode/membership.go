package raftnode

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/hashicorp/raft"

	"github.com/rollcall-io/rollcall/internal/wire/peerpb"
	"github.com/rollcall-io/rollcall/raftnode/mux"
)

const (
	membershipTick = 200 * time.Millisecond
	// caughtUpLag is how many entries a newcomer may lag to count as caught up, and
	// caughtUpLooks how many looks in a row must find it so.
	caughtUpLag   = 500
	caughtUpLooks = 3
	// configTimeout bounds the wait for a change of the configuration to start.
	configTimeout = 2 * time.Second
)

// joinRequest is a node that wants to be in the configuration.
type joinRequest struct {
	node    *peerpb.Member
	cluster string
	answer  chan error // nil: taken
}

// Join hands a request to the membership work of the leader.
func (s *server) Join(ctx context.Context, req *peerpb.JoinRequest) (*peerpb.JoinResponse, error) {
	n := s.node
	if n.leads() == 0 {
		return &peerpb.JoinResponse{NotLeader: true, Leader: n.hint()}, nil
	}
	j := joinRequest{node: req.Node, cluster: req.Cluster, answer: make(chan error, 1)}
	select {
	case n.joins <- j:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	select {
	case err := <-j.answer:
		if err != nil {
			return &peerpb.JoinResponse{Refusal: err.Error()}, nil
		}
		return &peerpb.JoinResponse{}, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// runMembership is leader work and the only place that changes the configuration: Raft
// has no usable compare-and-set for it. It takes newcomers in, without a vote at first,
// and gives them one when they have caught up.
func (n *Node) runMembership(ctx context.Context, _ uint64) {
	r := n.raft.Load()
	n.healOwnAddress(r)
	looks := make(map[raft.ServerID]int)
	tick := time.NewTicker(membershipTick)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case j := <-n.joins:
			err := n.admit(ctx, r, j)
			if err != nil {
				n.log.Warn("node not taken in", "id", j.node.GetId(), "address", j.node.GetAddress(), "err", err)
			}
			j.answer <- err
		case <-tick.C:
			n.promote(ctx, r, looks)
		}
	}
}

// healOwnAddress notes this node's own address in the configuration if it changed.
func (n *Node) healOwnAddress(r *raft.Raft) {
	me, known := find(n.servers(), n.serverID())
	if !known || string(me.Address) == n.advertise {
		return
	}
	if err := r.AddVoter(me.ID, raft.ServerAddress(n.advertise), 0, configTimeout).Error(); err != nil {
		n.log.Warn("own address was not changed", "address", n.advertise, "err", err)
	}
}

// admit takes a node into the configuration, or notes its new address.
func (n *Node) admit(ctx context.Context, r *raft.Raft, j joinRequest) error {
	m := j.node
	if !validNodeID(m.GetId()) || m.Incarnation == "" {
		return fmt.Errorf("node id %q is not valid", m.GetId())
	}
	if _, _, err := net.SplitHostPort(m.Address); err != nil {
		return fmt.Errorf("address %q: must be host:port", m.Address)
	}
	if own := n.fsm.ClusterID(); j.cluster != "" && own != "" && j.cluster != own {
		return fmt.Errorf("node is of cluster %s, this is %s", j.cluster, own)
	}
	id, address := serverID(m.Id, m.Incarnation), raft.ServerAddress(m.Address)
	servers := n.servers()
	known, member := find(servers, id)
	if member && known.Address == address {
		return nil
	}
	// Whoever answers there must be the very node that asks: a node with a mistyped
	// address must not push the right one out.
	if err := n.reach(ctx, address, id); err != nil {
		return fmt.Errorf("node cannot be reached under its address: %w", err)
	}
	for _, s := range servers {
		if s.ID == id || nodeOf(s.ID) != m.Id && s.Address != address {
			continue
		}
		if err := n.dropReplaced(ctx, r, s, address); err != nil {
			return err
		}
	}
	n.log.Info("taking node in", "id", m.Id, "incarnation", m.Incarnation, "address", m.Address)
	if member && known.Suffrage == raft.Voter {
		return wrapConfig("change address", r.AddVoter(id, address, 0, configTimeout))
	}
	return wrapConfig("add node", r.AddNonvoter(id, address, 0, configTimeout))
}

// dropReplaced removes a server whose place a newcomer takes: the same id with the
// incarnation of a disk that is gone, or another id at the address where the newcomer
// has just answered. If the old one still runs elsewhere the newcomer is refused.
func (n *Node) dropReplaced(ctx context.Context, r *raft.Raft, old raft.Server, address raft.ServerAddress) error {
	if old.Address != address && n.reach(ctx, old.Address, old.ID) == nil {
		return fmt.Errorf("node id %s is in use at %s", nodeOf(old.ID), old.Address)
	}
	n.log.Warn("removing a node that was replaced", "server", old.ID, "address", old.Address)
	return wrapConfig("remove replaced node", r.RemoveServer(old.ID, 0, configTimeout))
}

// reach tells whether a server answers at an address.
func (n *Node) reach(ctx context.Context, address raft.ServerAddress, id raft.ServerID) error {
	c, err := n.mux.Dial(ctx, mux.RPC, string(address), identityOf(id))
	if err != nil {
		return err
	}
	return c.Close()
}

// promote gives a vote to each newcomer that has kept up for some looks in a row.
func (n *Node) promote(ctx context.Context, r *raft.Raft, looks map[raft.ServerID]int) {
	for _, s := range n.servers() {
		if s.Suffrage == raft.Voter {
			continue
		}
		if !n.caughtUp(ctx, s) {
			looks[s.ID] = 0
			continue
		}
		if looks[s.ID]++; looks[s.ID] < caughtUpLooks {
			continue
		}
		delete(looks, s.ID)
		if err := wrapConfig("promote node", r.AddVoter(s.ID, s.Address, 0, configTimeout)); err != nil {
			n.log.Warn("node was not promoted", "server", s.ID, "err", err)
			continue
		}
		n.log.Info("node has caught up and votes", "server", s.ID)
	}
}

func (n *Node) caughtUp(ctx context.Context, s raft.Server) bool {
	ctx, cancel := context.WithTimeout(ctx, helloTimeout)
	defer cancel()
	client, err := n.peers.client(string(s.Address))
	if err != nil {
		return false
	}
	resp, err := client.Progress(ctx, &peerpb.ProgressRequest{})
	return err == nil && serverID(resp.Node, resp.Incarnation) == s.ID && resp.Applied > 0 &&
		resp.Applied+caughtUpLag >= n.fsm.Applied()
}

func wrapConfig(what string, future raft.IndexFuture) error {
	if err := future.Error(); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}
