package raftnode

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/raft"

	"github.com/rollcall-io/rollcall/raftnode/store"
)

// Start runs the node and returns: it may take long until the cluster is formed and the
// node is ready; see Ready. ctx bounds only the start itself. Start once.
func (n *Node) Start(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("start node: %w", err)
	}
	n.started = time.Now()
	n.group.Go(func() { n.server.Serve(n.mux.RPC()) })
	n.group.Go(func() { n.proposer.queue.Run(n.ctx, n.proposer.send) })
	n.group.Go(func() { n.forwarder.queue.Run(n.ctx, n.forwarder.send) })
	n.group.Go(func() { n.verifier.loop(n.ctx) })
	n.group.Go(func() { n.reader.loop(n.ctx) })
	n.group.Go(func() { n.runDisk(n.ctx) })
	// State that is there is opened at once, so that what is wrong with it is an error
	// of Start; a cluster may be long in coming.
	if n.decided.Load() {
		return n.run()
	}
	n.group.Go(func() {
		err := n.form(n.ctx)
		if err == nil {
			err = n.run()
		}
		if errors.Is(err, store.ErrDamaged) {
			n.fatal(ExitDamage, err)
		} else if err != nil && !errors.Is(err, context.Canceled) {
			n.fatal(ExitState, fmt.Errorf("join or form the cluster: %w", err))
		}
	})
	return nil
}

// run runs Raft and what needs it.
func (n *Node) run() error {
	if err := n.settle(); err != nil {
		return err
	}
	if err := n.store.Check(); err != nil {
		return n.advise(err)
	}
	n.store.Guard()
	notify, wake := make(chan bool, 16), make(chan struct{}, 1)
	config := n.raftConfig()
	config.NotifyCh = notify
	r, err := raft.NewRaft(config, n.fsm, n.store.Log, n.store.Stable, n.store.Snapshots, n.transportOnce())
	if err != nil {
		return fmt.Errorf("start raft on %s: %w", n.opts.DataDir, err)
	}
	n.raft.Store(r)
	n.group.Go(func() { drain(n.ctx, notify, wake) })
	n.group.Go(func() { n.runLeadership(n.ctx, r, wake) })
	n.group.Go(func() { n.runTracker(n.ctx, r) })
	n.group.Go(func() { n.runProgress(n.ctx) })
	n.group.Go(func() { n.runUpkeep(n.ctx, r) })
	n.group.Go(func() { n.runClusterID(n.ctx) })
	n.group.Go(func() { n.runAnnounce(n.ctx) })
	n.group.Go(func() { n.runBlank(n.ctx) })
	return nil
}

// raftConfig translates the options. What is set here and not there is no matter of taste.
func (n *Node) raftConfig() *raft.Config {
	c := raft.DefaultConfig()
	c.LocalID = n.serverID()
	c.HeartbeatTimeout = n.opts.ElectionTimeout
	c.ElectionTimeout = n.opts.ElectionTimeout
	c.LeaderLeaseTimeout = n.opts.ElectionTimeout
	c.CommitTimeout = n.opts.CommitTimeout
	c.MaxAppendEntries = n.opts.MaxAppendEntries
	c.SnapshotInterval = n.opts.SnapshotInterval
	c.SnapshotThreshold = n.opts.SnapshotEntries
	c.TrailingLogs = n.opts.TrailingLogs
	c.BatchApplyCh = true
	c.ShutdownOnRemove = false // a removed node answers its operator, and may come back
	c.NoLegacyTelemetry = true
	c.Logger = n.log.Named("raft")
	return c
}

// transportOnce makes the transport; it starts to take connections.
func (n *Node) transportOnce() *transport {
	if n.transport != nil {
		return n.transport
	}
	layer := &streams{Listener: n.mux.Raft(), mux: n.mux, expect: n.serverAt, elsewhere: n.movedTo}
	n.transport = newTransport(raft.NetworkTransportConfig{
		Stream: layer, MaxPool: transportPool, Timeout: transportTimeout, Logger: n.log.Named("transport"),
	}, n.store.Hanging, n.appendTelling)
	return n.transport
}

// serverAt is the server that the configuration has at an address.
func (n *Node) serverAt(address raft.ServerAddress) (raft.ServerID, bool) {
	for _, s := range n.servers() {
		if s.Address == address {
			return s.ID, true
		}
	}
	return "", false
}

// movedTo are the addresses of the join list that the configuration does not know. When
// all nodes have moved at once none finds another under the addresses on disk, and no
// leader is there to change them; the join list knows better. There are none, and no
// needless dials, while the list says what the configuration says.
func (n *Node) movedTo() []string {
	var moved []string
	for _, address := range n.joinList() {
		if _, known := n.serverAt(raft.ServerAddress(address)); !known {
			moved = append(moved, address)
		}
	}
	return moved
}

// writeConfiguration makes the first entry of a new cluster's log.
func (n *Node) writeConfiguration(c raft.Configuration) error {
	n.decided.Store(true)
	if err := n.store.SetIncarnation(n.incarnation); err != nil {
		return err
	}
	err := raft.BootstrapCluster(n.raftConfig(), n.store.Log, n.store.Stable, n.store.Snapshots, n.transportOnce(), c)
	if err != nil {
		return fmt.Errorf("bootstrap: %w", err)
	}
	return nil
}
