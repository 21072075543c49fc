package raftnode

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/hashicorp/raft"

	"github.com/rollcall-io/rollcall/internal/wire/peerpb"
)

// foundingVerdict is what becomes of a state that is nothing but the first configuration
// of a cluster, written here and never used: this node died right after.
type foundingVerdict int

const (
	foundingWaits   foundingVerdict = iota // not enough is known yet
	foundingHolds                          // go on with it
	foundingForgets                        // be as empty as the others
)

// settleFounding asks the others about such a state until it knows what becomes of it.
// true means that Raft may run with it, false that the node is empty now.
func (n *Node) settleFounding(ctx context.Context, c raft.Configuration) (bool, error) {
	n.log.Info("state holds nothing but the cluster's first configuration, asking the others", "members", c.Servers)
	for {
		answers, complete := n.helloAll(ctx)
		if err := ctx.Err(); err != nil {
			return false, err
		}
		switch n.judgeFounding(c, answers, complete) {
		case foundingHolds:
			return true, nil
		case foundingForgets:
			n.log.Warn("forgetting a first configuration that no longer has its members", "members", c.Servers)
			return false, n.store.ForgetFounding()
		}
		select {
		case <-ctx.Done():
			return false, ctx.Err()
		case <-time.After(helloPause + rand.N(helloPause)):
		}
	}
}

// judgeFounding decides. The configuration holds while the very nodes that it names, not
// others under their names, are a majority, or while one of the others counts on it. It
// is dropped when there is another cluster, since nobody but this node ever had it; and
// when all others are there and empty, which would wait for each other for ever.
func (n *Node) judgeFounding(c raft.Configuration, answers []*peerpb.HelloResponse, complete bool) foundingVerdict {
	_, named := find(c.Servers, n.serverID())
	reached, counted := 0, false
	if named {
		reached = 1
	}
	for _, a := range answers {
		if len(a.Members) > 0 {
			return foundingForgets
		}
		counted = counted || !a.Empty
		if _, member := find(c.Servers, serverID(a.Node.Id, a.Node.Incarnation)); member {
			reached++
		}
	}
	switch {
	case named && (counted || 2*reached > len(c.Servers)):
		return foundingHolds
	case complete && !counted:
		return foundingForgets
	}
	return foundingWaits
}

// foundingNeedsOthers tells whether the state must be talked about before Raft runs.
func (n *Node) foundingNeedsOthers() (bool, error) {
	c, only, err := n.store.Founding()
	if err != nil || !only || !n.opts.clustered() {
		return false, err
	}
	return n.judgeFounding(c, nil, false) != foundingHolds, nil
}

// blank tells whether Raft runs and has never heard anything: the node found itself in a
// configuration whose maker has not been elected yet. If its maker lost its disk before,
// nobody else has that configuration, and this node is as good as empty.
func (n *Node) blank() bool {
	r := n.raft.Load()
	return r != nil && r.LastIndex() == 0 && r.CurrentTerm() == 0
}

// runBlank goes on looking around while the node is blank, so that others see whom it
// has reached and can form a cluster with it.
func (n *Node) runBlank(ctx context.Context) {
	for n.blank() {
		select {
		case <-ctx.Done():
			return
		case <-time.After(helloPause + rand.N(helloPause)):
		}
		if n.blank() {
			n.helloAll(ctx)
		}
	}
}
