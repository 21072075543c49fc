package raftnode

import (
	"context"
	"time"

	"github.com/rollcall-io/rollcall/raftnode/identity"
	"github.com/rollcall-io/rollcall/registry"
)

// runDigest is leader work: it proposes the state's digest, so that every node compares
// its own at the same index, at most once an interval and only after a change. A check is an
// entry itself and moves the last entry time, which the digest covers: what tells whether
// anything changed is the index, else an idle cluster would write an entry a minute.
func (n *Node) runDigest(ctx context.Context, term uint64) {
	tick := time.NewTicker(n.opts.DigestInterval)
	defer tick.Stop()
	var last uint64 // index of the newest check
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		at, digest := n.fsm.Digest()
		if at == last {
			continue
		}
		result, err := n.ProposeAsLeader(ctx, term, registry.DigestCheck{At: at, Digest: digest})
		if err != nil {
			n.log.Debug("digest was not proposed", "err", err)
			continue
		}
		last = result.Index
	}
}

// nameCluster is leader work: it gives a new cluster its id, once.
func (n *Node) nameCluster(ctx context.Context, term uint64) {
	for ctx.Err() == nil && n.fsm.ClusterID() == "" {
		id := n.clusterID()
		if id == "" {
			id = identity.NewCluster()
		}
		_, err := n.ProposeAsLeader(ctx, term, registry.ClusterInit{ClusterID: id})
		if err == nil {
			return
		}
		n.log.Warn("cluster id was not proposed", "err", err)
		select {
		case <-ctx.Done():
		case <-time.After(n.opts.ElectionTimeout):
		}
	}
}
