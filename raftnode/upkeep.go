package raftnode

import (
	"context"
	"errors"
	"time"

	"github.com/hashicorp/raft"

	"github.com/rollcall-io/rollcall/raftnode/identity"
)

// runUpkeep bounds the log by bytes, where Raft counts entries only: a snapshot when
// enough bytes were appended since the last one, and fewer entries kept behind a
// snapshot when they are large.
func (n *Node) runUpkeep(ctx context.Context, r *raft.Raft) {
	tick := time.NewTicker(min(max(n.opts.SnapshotInterval/4, 50*time.Millisecond), 5*time.Second))
	defer tick.Stop()
	snapshot := n.store.Snapshots.LastIndex()
	base := n.store.Appended()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		bytes := n.store.Appended()
		n.boundTrailing(r)
		if last := n.store.Snapshots.LastIndex(); last != snapshot {
			// What came while it was made is not in it.
			snapshot, base = last, bytes-min(bytes, n.store.After(last))
		}
		if bytes-base >= n.opts.SnapshotBytes {
			base = bytes // one that fails is tried again after as many bytes more
			if err := r.Snapshot().Error(); err != nil && !errors.Is(err, raft.ErrNothingNewToSnapshot) {
				n.log.Warn("snapshot failed", "err", err)
			}
		}
	}
}

// boundTrailing sets how many entries stay behind a snapshot: as many as configured, or
// as the newest that fit into TrailingBytes.
func (n *Node) boundTrailing(r *raft.Raft) {
	if n.opts.TrailingBytes == 0 {
		return
	}
	want := n.opts.TrailingLogs
	if entries, bounded := n.store.Within(n.opts.TrailingBytes); bounded {
		want = min(want, entries)
	}
	c := r.ReloadableConfig()
	// Small changes are not worth a reload.
	if c.TrailingLogs <= want && want-c.TrailingLogs <= want/8 || c.TrailingLogs > want && c.TrailingLogs-want <= want/8 {
		return
	}
	c.TrailingLogs = want
	if err := r.ReloadConfig(c); err != nil {
		n.log.Warn("trailing logs were not changed", "want", want, "err", err)
	}
}

// runClusterID waits until the cluster's id is applied here and keeps it in the
// identity file, so that a node of another cluster is refused from its first word.
func (n *Node) runClusterID(ctx context.Context) {
	for {
		if id := n.fsm.ClusterID(); id != "" {
			n.keepClusterID(id)
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pollFast):
		}
	}
}

func (n *Node) keepClusterID(id string) {
	n.identMu.Lock()
	defer n.identMu.Unlock()
	switch n.ident.Cluster {
	case id:
		return
	case "":
	default:
		n.fatal(ExitState, errors.New("data directory "+n.opts.DataDir+" belongs to cluster "+n.ident.Cluster+", the log to "+id))
		return
	}
	n.ident.Cluster = id
	if err := identity.Save(n.opts.DataDir, n.ident); err != nil {
		n.log.Error("cluster id was not kept", "err", err)
	}
}

// clusterID is the cluster's id as far as this node knows.
func (n *Node) clusterID() string {
	n.identMu.Lock()
	defer n.identMu.Unlock()
	return n.ident.Cluster
}
