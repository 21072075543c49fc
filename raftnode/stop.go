package raftnode

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/raft"

	"github.com/rollcall-io/rollcall/registry"
)

const (
	// transferWait bounds the handing over of leadership at a stop.
	transferWait = 2 * time.Second
	// snapshotWait bounds the snapshot at a stop.
	snapshotWait = 3 * time.Second
	// shutdownWait bounds the end of Raft.
	shutdownWait = 5 * time.Second
)

// PrepareStop makes the node not ready, ends its leader work, waits for that, and hands
// leadership over. Afterwards the node still answers and forwards, so that clients can
// be drained; Stop ends it. That nobody takes the leadership, as when all nodes stop
// together, is logged and no error; the error is that of ctx.
func (n *Node) PrepareStop(ctx context.Context) error {
	n.stopping.Store(true)
	n.restTerm(ctx)
	voters := 0
	for _, s := range n.servers() {
		if s.Suffrage == raft.Voter {
			voters++
		}
	}
	if voters < 2 || !n.leadsForRaft() {
		return nil
	}
	bounded, cancel := context.WithTimeout(ctx, transferWait)
	defer cancel()
	if err := n.handOver(bounded); err != nil {
		n.log.Warn("stopping without handing over", "err", err)
	}
	return ctx.Err()
}

// handOver moves the leadership and waits until this node knows the new leader: writes
// that arrive meanwhile are to find it.
func (n *Node) handOver(ctx context.Context) error {
	if err := n.transfer(ctx); err != nil {
		return err
	}
	for {
		v := n.tracker.load()
		if v.id != "" && !v.self {
			return nil
		}
		select {
		case <-v.replaced:
		case <-ctx.Done():
			return fmt.Errorf("wait for the new leader: %w", ctx.Err())
		}
	}
}

// Stop ends the node: background work, peer connections, Raft, stores, in this order;
// each waits for what it ends, all bounded by ctx. A snapshot is made before if anything
// changed. Without PrepareStop before, that comes first. Stopping again gives the same.
func (n *Node) Stop(ctx context.Context) error {
	n.stopOnce.Do(func() { n.stopErr = n.stop(ctx) })
	return n.stopErr
}

func (n *Node) stop(ctx context.Context) error {
	var errs []error
	if !n.stopping.Load() {
		errs = append(errs, n.PrepareStop(ctx))
	}
	close(n.done)
	n.forwarder.queue.Close(registry.ErrShuttingDown)
	n.snapshotAtStop(ctx)
	n.cancel()
	n.proposer.queue.Close(registry.ErrShuttingDown)
	// Calls of and to peers end here; the log entries in flight end by Raft, which
	// still runs.
	n.server.Stop()
	n.peers.close()
	errs = append(errs, n.await(ctx, "background work", n.group.Wait))
	// Connections before Raft: a snapshot that a peer is sending would hold its end.
	errs = append(errs, n.mux.Close())
	if r := n.raft.Load(); r != nil {
		bounded, cancel := context.WithTimeout(ctx, shutdownWait)
		defer cancel()
		errs = append(errs, n.await(bounded, "raft", func() {
			if err := r.Shutdown().Error(); err != nil {
				n.log.Warn("raft shutdown", "err", err)
			}
		}))
	}
	if n.transport != nil {
		errs = append(errs, n.transport.Close())
	}
	if err := errors.Join(errs...); err != nil {
		// Something still runs: closing the files under it would be worse than leaving
		// them to the end of the process.
		return fmt.Errorf("stop node: %w", err)
	}
	return n.store.Close()
}

// await waits for f in the time of ctx.
func (n *Node) await(ctx context.Context, what string, f func()) error {
	done := make(chan struct{})
	go func() { f(); close(done) }()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%s did not end: %w", what, ctx.Err())
	}
}

// snapshotAtStop makes a snapshot if anything changed since the last one: a process
// that restarts more often than Raft looks would otherwise never make one.
func (n *Node) snapshotAtStop(ctx context.Context) {
	r := n.raft.Load()
	if r == nil || n.fsm.Applied() <= n.store.Snapshots.LastIndex() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, snapshotWait)
	defer cancel()
	err := n.await(ctx, "snapshot", func() {
		if err := r.Snapshot().Error(); err != nil && !errors.Is(err, raft.ErrNothingNewToSnapshot) {
			n.log.Warn("snapshot at stop", "err", err)
		}
	})
	if err != nil {
		n.log.Warn("snapshot at stop", "err", err)
	}
}
