package raftnode

import (
	"context"
	"time"

	"github.com/rollcall-io/rollcall/raftnode/identity"
	"github.com/rollcall-io/rollcall/registry"
)

// digestInterval is how often replicas are compared at most.
const digestInterval = time.Minute

// runDigest is leader work: it proposes the state's digest, so that every node compares
// its own at the same index, at most once a minute and only after a change.
func (n *Node) runDigest(ctx context.Context, term uint64) {
	tick := time.NewTicker(digestInterval)
	defer tick.Stop()
	var last registry.Digest
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		at, digest := n.fsm.Digest()
		if at == 0 || digest == last {
			continue
		}
		if _, err := n.ProposeAsLeader(ctx, term, registry.DigestCheck{At: at, Digest: digest}); err != nil {
			n.log.Debug("digest was not proposed", "err", err)
			continue
		}
		last = digest
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
