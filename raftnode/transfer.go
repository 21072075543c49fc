package raftnode

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"
)

// transfer hands leadership to the voter that is furthest, and waits for the end of the
// attempt in the time of ctx. An error means: still the leader, go on.
func (n *Node) transfer(ctx context.Context) error { return n.transferTo(ctx, nil) }

// transferTo is transfer to a voter that is named.
func (n *Node) transferTo(ctx context.Context, to *raft.Server) error {
	r := n.raft.Load()
	if r == nil || !n.leadsForRaft() {
		return nil
	}
	// Raft bounds an attempt by the election timeout, but its goroutine may get stuck
	// (hashicorp/raft #696), so its end is not waited for beyond ctx.
	result := make(chan error, 1)
	go func() {
		if to == nil {
			result <- r.LeadershipTransfer().Error()
			return
		}
		result <- r.LeadershipTransferToServer(to.ID, to.Address).Error()
	}()
	select {
	case err := <-result:
		if err != nil {
			return fmt.Errorf("hand leadership over: %w", err)
		}
		return nil
	case <-ctx.Done():
		return fmt.Errorf("hand leadership over: %w", ctx.Err())
	}
}

// errTransferStuck ends a process whose Raft refuses every entry for good.
var errTransferStuck = errors.New("raft refuses entries because of a leadership transfer that does not end")

// transferWatch notices a transfer that never ends: Raft then refuses every entry while
// this node goes on leading, and only a restart helps (hashicorp/raft #696).
type transferWatch struct {
	limit time.Duration
	since atomic.Int64 // of the first refusal in a row, 0 without one
}

// refused notes a refusal and tells whether they have lasted too long.
func (w *transferWatch) refused(now time.Time) bool {
	if w.since.CompareAndSwap(0, now.UnixNano()) {
		return false
	}
	since := w.since.Load()
	return since != 0 && now.Sub(time.Unix(0, since)) > w.limit
}

// passed notes that an entry went through, or that leadership changed.
func (w *transferWatch) passed() {
	if w.since.Load() != 0 {
		w.since.Store(0)
	}
}

// noteTermRefusal looks at what kept the first command of a term from the log. A transfer
// that got stuck in an earlier term refuses it in each later one.
func (n *Node) noteTermRefusal(err error) {
	if errors.Is(err, raft.ErrLeadershipTransferInProgress) {
		n.noteTransferRefusal()
	}
}

func (n *Node) noteTransferRefusal() {
	if n.watch.refused(time.Now()) && n.leadsForRaft() {
		n.fatal(ExitStuck, errTransferStuck)
	}
}
