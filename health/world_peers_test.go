package health

import (
	"context"
	"time"

	"github.com/rollcall-io/rollcall/registry"
)

// others are the nodes that this one can reach, but itself.
func (n *node) others() (all []*node) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, other := range n.nodes {
		if other.id != n.id && !other.down && !n.apart {
			all = append(all, other)
		}
	}
	return all
}

func (n *node) AskSilent(ctx context.Context) (all []registry.SilentNotes) {
	if !sleep(ctx, time.Millisecond) {
		return nil
	}
	for _, other := range n.others() {
		all = append(all, other.keeper.Silent())
	}
	return all
}

func (n *node) TellRenewed(ctx context.Context, refs []registry.LeaseRef) {
	n.mu.Lock()
	takes := n.tellTime
	n.mu.Unlock()
	if !sleep(ctx, takes) {
		return
	}
	for _, other := range n.others() {
		other.keeper.Renewed(refs)
	}
}
