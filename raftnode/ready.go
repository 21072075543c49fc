package raftnode

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"github.com/rollcall-io/rollcall/internal/wire/peerpb"
	"github.com/rollcall-io/rollcall/registry"
)

const (
	pollFast = 50 * time.Millisecond  // until this node has caught up
	pollSlow = 500 * time.Millisecond // afterwards
	pollPeer = 1 * time.Second        // bound of one question, and pace for the others
	// maxLag is how far behind a known leader a node may be and still be ready.
	maxLag = 10 * time.Second
)

// progress is what this node knows of the leader's and the other nodes' progress.
type progress struct {
	mu      sync.Mutex
	target  uint64    // applied index of the leader at the first word from it
	caught  bool      // this node has once reached target as a voter
	index   uint64    // newest applied index that a leader told
	told    time.Time // when it was asked for that
	current time.Time // newest such time whose index is applied here
	peers   map[string]peerState
}

// peerState is the last word of another node.
type peerState struct {
	http    string
	ready   bool
	diskLow bool
	heard   time.Time
}

// word takes in what a node said.
func (p *progress) word(resp *peerpb.ProgressResponse, asked time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.peers == nil {
		p.peers = make(map[string]peerState)
	}
	p.peers[resp.Node] = peerState{http: resp.Http, ready: resp.Ready, diskLow: resp.DiskLow, heard: asked}
	if !resp.Leads {
		return
	}
	if p.target == 0 {
		p.target = resp.Applied
	}
	p.index, p.told = resp.Applied, asked
}

// look compares with what is applied here. Without a word from a leader nothing becomes
// more current, so that the lag of a node that is cut off grows.
func (p *progress) look(applied uint64, voter bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.target != 0 && applied >= p.target && voter {
		p.caught = true
	}
	if p.index != 0 && applied >= p.index && p.told.After(p.current) {
		p.current = p.told
	}
}

// lead notes that this node leads: nothing is newer than what it has.
func (p *progress) lead(now time.Time) {
	p.mu.Lock()
	p.caught, p.current = true, now
	p.mu.Unlock()
}

// runProgress asks the leader now and then how far it is, and the others how they are.
func (n *Node) runProgress(ctx context.Context) {
	var others time.Time
	for {
		now := time.Now()
		v := n.tracker.load()
		if v.self {
			n.progress.lead(now)
		} else if v.id != "" {
			n.poll(ctx, v.address)
		}
		me, _ := find(n.servers(), n.serverID())
		n.progress.look(n.fsm.Applied(), me.Suffrage == raft.Voter && me.ID != "")
		if now.Sub(others) >= pollPeer {
			others = now
			n.pollOthers(ctx, v)
		}
		pace := pollSlow
		if !n.caught() {
			pace = pollFast
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pace):
		}
	}
}

func (n *Node) pollOthers(ctx context.Context, v *view) {
	var group sync.WaitGroup
	for _, s := range n.servers() {
		if s.ID != n.serverID() && string(s.Address) != v.address {
			group.Go(func() { n.poll(ctx, string(s.Address)) })
		}
	}
	group.Wait()
}

func (n *Node) poll(ctx context.Context, address string) {
	ctx, cancel := context.WithTimeout(ctx, pollPeer)
	defer cancel()
	client, err := n.peers.client(address)
	if err != nil {
		return
	}
	asked := time.Now()
	if resp, err := client.Progress(ctx, &peerpb.ProgressRequest{}); err == nil {
		n.progress.word(resp, asked)
	}
}

func (n *Node) caught() bool {
	n.progress.mu.Lock()
	defer n.progress.mu.Unlock()
	return n.progress.caught
}

// Ready tells whether clients may use this node: it has restored its state, has
// reached the index that a leader told it, has a vote, and is not far behind a leader
// that it knows. A node that was ready stays so without a leader: it serves reads. The
// error matches registry.ErrNotReady or registry.ErrShuttingDown.
func (n *Node) Ready() error {
	if n.stopping.Load() {
		return registry.ErrShuttingDown
	}
	if !n.caught() {
		return registry.ErrNotReady.Because(n.missing())
	}
	if n.hung() {
		return registry.ErrNotReady.Because("the log store hangs")
	}
	v := n.tracker.load()
	if lag := n.lag(v); v.id != "" && !v.self && lag > maxLag {
		return registry.ErrNotReady.Because(fmt.Sprintf("node is %v behind the leader", lag.Round(time.Millisecond)))
	}
	return nil
}

// missing says what a node that has not caught up yet waits for.
func (n *Node) missing() string {
	if n.raft.Load() == nil {
		return fmt.Sprintf("node is not ready: no cluster yet, %d of %d nodes reached", max(1, len(n.formation.get())), max(1, n.opts.BootstrapExpect))
	}
	n.progress.mu.Lock()
	target := n.progress.target
	n.progress.mu.Unlock()
	applied := n.fsm.Applied()
	switch {
	case n.tracker.load().id == "":
		return "node is not ready: no leader, is there a majority?"
	case target == 0 || applied < target:
		return fmt.Sprintf("node is not ready: catching up, %d of %d entries applied", applied, target)
	default:
		return "node is not ready: it has no vote yet"
	}
}

// LagMs is how old this node's state may be, in milliseconds: 0 on the leader; for a
// node that has all that it was told of, how long ago the leader was last heard; else
// since when it knows of something newer.
func (n *Node) LagMs() int64 { return n.lag(n.tracker.load()).Milliseconds() }

func (n *Node) lag(v *view) time.Duration {
	r := n.raft.Load()
	if v.self || r == nil {
		return 0
	}
	n.progress.mu.Lock()
	current, index := n.progress.current, n.progress.index
	n.progress.mu.Unlock()
	if n.fsm.Applied() >= index {
		if contact := r.LastContact(); contact.After(current) {
			current = contact
		}
	}
	if current.IsZero() {
		return time.Since(n.started)
	}
	return max(0, time.Since(current))
}
