package raftnode

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"
)

// view is what this node believes about the leader at one moment. It is immutable.
type view struct {
	id      string // node id, empty when no leader is known
	address string
	term    uint64
	self    bool // this node leads and its proposer is open

	replaced chan struct{} // closed when a newer view is there
}

func (v *view) same(o *view) bool {
	return v.id == o.id && v.address == o.address && v.term == o.term && v.self == o.self
}

// succeeds tells whether v, seen after o, proves that the leader of o has been replaced.
func (v *view) succeeds(o *view) bool {
	return v.id != "" && (v.id != o.id || v.term != o.term)
}

// tracker publishes the newest view.
type tracker struct {
	mu      sync.Mutex // one update at a time
	current atomic.Pointer[view]
}

func newTracker() *tracker {
	t := &tracker{}
	t.current.Store(&view{replaced: make(chan struct{})})
	return t
}

// load is the present view. It takes no lock.
func (t *tracker) load() *view { return t.current.Load() }

// update replaces the view by what look returns, if that differs.
func (t *tracker) update(look func() view) {
	t.mu.Lock()
	defer t.mu.Unlock()
	next := look()
	old := t.current.Load()
	if old.same(&next) {
		return
	}
	next.replaced = make(chan struct{})
	t.current.Store(&next)
	close(old.replaced)
}

// look builds the view from what Raft says. While this node leads for Raft but its
// proposer is not open yet, no leader is named: nobody could use it.
func (n *Node) look() view {
	r := n.raft.Load()
	if r == nil {
		return view{}
	}
	term := r.CurrentTerm()
	address, id := r.LeaderWithID()
	if id == "" {
		return view{term: term}
	}
	if id != n.serverID() {
		return view{id: nodeOf(id), address: string(address), term: term}
	}
	if open := n.leads(); open != 0 {
		return view{id: n.id, address: n.advertise, term: open, self: true}
	}
	return view{term: term}
}

func (n *Node) refreshView() { n.tracker.update(n.look) }

// runTracker keeps the view fresh: at each of Raft's observations, and now and then,
// since observations may be dropped.
func (n *Node) runTracker(ctx context.Context, r *raft.Raft) {
	events := make(chan raft.Observation, 64)
	observer := raft.NewObserver(events, false, func(o *raft.Observation) bool {
		switch o.Data.(type) {
		case raft.LeaderObservation, raft.RaftState:
			return true
		}
		return false
	})
	r.RegisterObserver(observer)
	defer r.DeregisterObserver(observer)
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		n.refreshView()
		select {
		case <-ctx.Done():
			return
		case <-events:
		case <-tick.C:
		}
	}
}

// Leader is the node that leads, as far as this node knows: id is empty when it knows
// of none. self tells whether it is this node. It is cheap and takes no lock.
func (n *Node) Leader() (id string, term uint64, self bool) {
	v := n.tracker.load()
	return v.id, v.term, v.self
}
