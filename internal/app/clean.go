package app

import (
	"context"
	"time"

	"github.com/rollcall-io/rollcall/registry"
)

const (
	// cleanInterval is how often the leader looks for services to remove.
	cleanInterval = 5 * time.Second
	// cleanBatch bounds what one round removes, so that registrations keep their share.
	cleanBatch = 512
)

// cleanEmptyServices is a leader's job: it removes services that a registration made and
// that had no instances for the configured time. Each removal is guarded by the service's
// revision, so a registration in between wins.
func (n *Node) cleanEmptyServices(ctx context.Context, term uint64) {
	if n.opts.EmptyServiceTTL == 0 {
		return
	}
	ticker := time.NewTicker(cleanInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		before := n.opts.wallClock().Add(-n.opts.EmptyServiceTTL).UnixMilli()
		for _, c := range n.state.EmptyServices(before, cleanBatch) {
			if !n.cleanOne(ctx, term, c) {
				break
			}
		}
	}
}

// cleanOne is false when the rest of the round had better wait.
func (n *Node) cleanOne(ctx context.Context, term uint64, c registry.ServiceDelete) bool {
	_, err := n.raft.ProposeAsLeader(ctx, term, c)
	if refused, ok := err.(*registry.Error); ok && refused.Code == registry.CodeGuardFailed {
		return true
	}
	if err != nil && ctx.Err() == nil {
		n.log.Warn("empty service stays for now", "service", c.Key.String(), "err", err)
	}
	return err == nil
}
