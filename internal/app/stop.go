package app

import (
	"context"
	"errors"
)

// Stop ends the node in the order that costs clients least and waits for all of it,
// at most as long as ctx:
//
//  1. no longer ready, leader work ended, leadership handed over;
//  2. streams ended, so that their clients move on, and HTTP drained while this node still
//     forwards writes to the new leader;
//  3. the collector of beats, pushes, watches;
//  4. peer connections, Raft, stores;
//  5. the state machine's notifier.
//
// Stopping Raft before HTTP would fail the requests that are under way. The error joins
// what went wrong; everything is stopped all the same.
func (n *Node) Stop(ctx context.Context) error {
	n.stopping.Store(true)
	var errs []error
	if n.group != nil { // it was started
		errs = append(errs, n.raft.PrepareStop(ctx))
		n.watches.Close()
		errs = append(errs, n.server.Shutdown(ctx), n.server.Close(), n.listener.Close())
		if n.debug != nil {
			errs = append(errs, n.debug.Close())
		}
		n.cancel()
		if err := n.group.Wait(); !errors.Is(err, context.Canceled) {
			errs = append(errs, err)
		}
	}
	errs = append(errs, n.pusher.Close(), n.raft.Stop(ctx))
	n.state.Close()
	n.log.Info("stopped")
	return joinStop(errs)
}

// discard ends what a failed New had built.
func (n *Node) discard() error {
	var err error
	if n.pusher != nil {
		err = n.pusher.Close()
	}
	if n.raft != nil {
		err = errors.Join(err, n.raft.Stop(context.Background()))
	}
	if n.state != nil {
		n.state.Close()
	}
	return err
}
