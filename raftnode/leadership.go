package raftnode

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"github.com/rollcall-io/rollcall/internal/wire"
	"github.com/rollcall-io/rollcall/registry"
)

const (
	// stopJobTimeout bounds the end of a term's work. Two generations of it must never
	// run at once, so a process that cannot end it ends itself.
	stopJobTimeout = 5 * time.Second
	// leadershipTick catches a change of term that came without a notification.
	leadershipTick = 50 * time.Millisecond
)

// term is this node's leadership of one term, and the work that goes with it.
type term struct {
	number uint64
	cancel context.CancelFunc // ends everything of the term
	rest   context.CancelFunc // ends its work; the proposer stays open
	worked chan struct{}      // closed when the work has ended
	done   chan struct{}      // closed when everything has ended
}

// drain empties Raft's notification channel and does nothing else: Raft waits for it,
// and a reader that called Raft would wait for Raft.
func drain(ctx context.Context, notify <-chan bool, wake chan<- struct{}) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-notify:
		}
		select {
		case wake <- struct{}{}:
		default:
		}
	}
}

// runLeadership keeps at most one term at work: the one that this node leads. The
// former one has ended before the next begins, also when the leadership was lost and
// won again between two looks.
func (n *Node) runLeadership(ctx context.Context, r *raft.Raft, wake <-chan struct{}) {
	tick := time.NewTicker(leadershipTick)
	defer tick.Stop()
	var current *term
	for {
		number, leads := ledTerm(r)
		if current != nil && (!leads || current.number != number) {
			n.endTerm(current)
			current = nil
		}
		if current == nil && leads {
			current = n.beginTerm(ctx, r, number)
		}
		select {
		case <-ctx.Done():
			if current != nil {
				n.endTerm(current)
			}
			return
		case <-wake:
		case <-tick.C:
		}
	}
}

// ledTerm is the term that this node leads for Raft, if it does.
func ledTerm(r *raft.Raft) (uint64, bool) {
	number := r.CurrentTerm()
	return number, r.State() == raft.Leader && r.CurrentTerm() == number
}

func (n *Node) leadsForRaft() bool {
	r := n.raft.Load()
	return r != nil && r.State() == raft.Leader
}

// leads is the term that this node leads and whose first command it has applied, else 0.
// While its disk hangs a node leads nothing: others replace it, and it cannot know.
func (n *Node) leads() uint64 {
	if n.hung() {
		return 0
	}
	return n.proposer.openTerm()
}

// hung tells whether the log store hangs, so that this node has fallen silent.
func (n *Node) hung() bool { return n.store.Hanging() > hungAfter }

func (n *Node) beginTerm(ctx context.Context, r *raft.Raft, number uint64) *term {
	ctx, cancel := context.WithCancel(ctx)
	work, rest := context.WithCancel(ctx)
	t := &term{number: number, cancel: cancel, rest: rest, worked: make(chan struct{}), done: make(chan struct{})}
	n.m.leaderships.Inc()
	n.watch.passed() // what an earlier term refused counts no more
	n.log.Info("leading", "term", number)
	n.termMu.Lock()
	n.term = t
	if n.stopping.Load() {
		rest()
	}
	n.termMu.Unlock()
	go func() {
		defer close(t.done)
		n.lead(ctx, work, r, t)
	}()
	return t
}

// endTerm ends a term and waits for its end.
func (n *Node) endTerm(t *term) {
	n.log.Info("no longer leading", "term", t.number)
	// Cancel first: lead opens the proposer and then looks whether it was cancelled.
	t.cancel()
	n.proposer.close()
	n.refreshView()
	if !waitFor(t.done, stopJobTimeout) {
		n.fatal(ExitStuck, fmt.Errorf("work of term %d did not end within %v", t.number, stopJobTimeout))
		<-t.done
	}
	n.termMu.Lock()
	n.term = nil
	n.termMu.Unlock()
}

// restTerm ends the work of the present term, if there is one, and lets none begin.
// The proposer stays open: writes go on until leadership has moved.
func (n *Node) restTerm(ctx context.Context) {
	n.termMu.Lock()
	t := n.term
	n.termMu.Unlock()
	if t == nil {
		return
	}
	t.rest()
	select {
	case <-t.worked:
	case <-t.done:
	case <-ctx.Done():
	}
}

// lead runs a term from its first command to its end.
func (n *Node) lead(ctx, work context.Context, r *raft.Raft, t *term) {
	if !n.establish(ctx, r, t.number) {
		close(t.worked)
		return
	}
	n.proposer.open(t.number)
	if ctx.Err() != nil {
		// The end of the term closed the proposer a moment ago.
		n.proposer.close()
	}
	n.refreshView()
	var group sync.WaitGroup
	jobs := append([]LeaderJob{n.runMembership, n.runDigest, n.nameCluster}, n.opts.LeaderJobs...)
	for _, job := range jobs {
		if work.Err() == nil {
			group.Go(func() { job(work, t.number) })
		}
	}
	group.Wait()
	close(t.worked)
	<-ctx.Done()
}

// establish proposes the first command of the term and waits until it is applied:
// from then on this node's state holds everything that was ever acknowledged. When that
// does not work leadership is given away instead of being held without use.
func (n *Node) establish(ctx context.Context, r *raft.Raft, number uint64) bool {
	for try := 1; ctx.Err() == nil; try++ {
		err := n.startTerm(r, number)
		if err == nil {
			return true
		}
		if errors.Is(err, raft.ErrNotLeader) || errors.Is(err, raft.ErrLeadershipLost) || errors.Is(err, raft.ErrRaftShutdown) {
			return false
		}
		n.log.Warn("term could not be established", "term", number, "try", try, "err", err)
		n.noteTermRefusal(err)
		n.transfer(ctx)
		select {
		case <-ctx.Done():
		case <-time.After(n.opts.ElectionTimeout):
		}
	}
	return false
}

func (n *Node) startTerm(r *raft.Raft, number uint64) error {
	command, err := wire.EncodeCommand(registry.TermStart{Term: number, Node: n.id, Level: featureLevel})
	if err != nil {
		return fmt.Errorf("start term %d: %w", number, err)
	}
	entry := wire.PackEntry(n.id, number, n.opts.WallClock().UnixMilli(), [][]byte{command})
	future := r.ApplyLog(raft.Log{Data: entry}, enqueueTimeout)
	if err := future.Error(); err != nil {
		return fmt.Errorf("start term %d: %w", number, err)
	}
	results, ok := future.Response().([]registry.Result)
	if !ok || len(results) != 1 {
		return fmt.Errorf("start term %d: the state machine gave no result", number)
	}
	if results[0].Err != nil {
		return fmt.Errorf("start term %d: %w", number, results[0].Err)
	}
	return nil
}

// waitFor waits for the end of a channel; false when it takes too long.
func waitFor(done <-chan struct{}, timeout time.Duration) bool {
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case <-done:
		return true
	case <-timer.C:
		return false
	}
}
