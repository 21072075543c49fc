package batch

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/rollcall-io/rollcall/internal/wire"
	"github.com/rollcall-io/rollcall/registry"
)

// Item is one command on its way.
type Item struct {
	// Encoded is the command's byte form.
	Encoded []byte
	// Deadline is when the command must no longer be sent.
	Deadline time.Time
	// Key is the instance that the command is about, if HasKey.
	Key    registry.InstanceKey
	HasKey bool

	group *Group
	slot  int
	state atomic.Int32
}

// The states of an item. It leaves queued once, to one of the two others.
const (
	queued    = 0
	sent      = 1
	abandoned = 2
)

// Group is a number of items that one caller waits for together.
type Group struct {
	// Items are filled by the caller before the group is put into a queue.
	Items []Item

	outcomes []wire.Outcome
	left     atomic.Int32
	done     chan struct{}
}

// NewGroup makes a group of n items.
func NewGroup(n int) *Group {
	g := &Group{Items: make([]Item, n), outcomes: make([]wire.Outcome, n), done: make(chan struct{})}
	g.left.Store(int32(n))
	for i := range g.Items {
		g.Items[i].group, g.Items[i].slot = g, i
	}
	return g
}

// Complete gives an item its outcome, once. The last item of a group ends Wait.
func (it *Item) Complete(o wire.Outcome) {
	g := it.group
	g.outcomes[it.slot] = o
	if g.left.Add(-1) == 0 {
		close(g.done)
	}
}

// Wait waits for all items and returns their outcomes in order. When ctx ends before,
// items that were not sent yet never will be, and the error tells what is known:
// registry.ErrTimeout if nothing was sent, else registry.ErrUncertain.
func (g *Group) Wait(ctx context.Context) ([]wire.Outcome, error) {
	select {
	case <-g.done:
		return g.outcomes, nil
	case <-ctx.Done():
	}
	unsent := true
	for i := range g.Items {
		if !g.Items[i].state.CompareAndSwap(queued, abandoned) && g.Items[i].state.Load() == sent {
			unsent = false
		}
	}
	// An answer that came at the same moment is still better than none.
	select {
	case <-g.done:
		return g.outcomes, nil
	default:
	}
	if unsent {
		return nil, registry.ErrTimeout.Because("deadline passed before the command was proposed")
	}
	return nil, registry.ErrUncertain.Because("no outcome before the deadline")
}
