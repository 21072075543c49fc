package raftnode

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rollcall-io/rollcall/internal/wire"
	"github.com/rollcall-io/rollcall/internal/wire/peerpb"
	"github.com/rollcall-io/rollcall/registry"
)

// VerifyLeader proves that this node leads: a majority said so after the call began.
// Callers that wait at the same time share one round. Errors: registry.ErrNotLeader,
// registry.ErrTimeout when ctx ended first.
func (n *Node) VerifyLeader(ctx context.Context) error {
	if n.proposer.openTerm() == 0 {
		return registry.ErrNotLeader
	}
	_, err := n.verifier.get(ctx)
	return asWait(err)
}

// verify is one round, run by the verifier.
func (n *Node) verify(ctx context.Context) (uint64, error) {
	r, term := n.raft.Load(), n.proposer.openTerm()
	if r == nil || term == 0 {
		return 0, registry.ErrNotLeader
	}
	n.m.verifies.Inc()
	// Leadership may have been lost and won again while the end of the old term has not
	// been dealt with here: what was read in it is not proven by the later one.
	if err := n.confirm(ctx, r, term); err != nil {
		return 0, err
	}
	return term, nil
}

// ReadIndex is the index that this node must have applied before it serves a
// linearizable read that began before the call. It works on any node. Errors:
// registry.ErrNoLeader when none was found in the time of ctx.
func (n *Node) ReadIndex(ctx context.Context) (uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, n.opts.WriteTimeout)
	defer cancel()
	for {
		v := n.tracker.load()
		var index uint64
		var err error
		switch {
		case v.id == "":
			if fault := n.hold(ctx, v); fault != nil {
				return 0, fault
			}
			continue
		case v.self:
			index, err = n.readIndexHere(ctx)
		default:
			index, err = n.reader.get(ctx)
		}
		if err == nil {
			return index, nil
		}
		if !n.pause(ctx, v) {
			return 0, registry.ErrNoLeader
		}
	}
}

// readIndexHere is ReadIndex on the leader: its own applied index, once the first
// command of its term is applied, and a leadership check after that. Raft's commit
// index would not do: it may name an entry that the state machine is never shown.
func (n *Node) readIndexHere(ctx context.Context) (uint64, error) {
	term := n.leads()
	if term == 0 {
		return 0, registry.ErrNotLeader
	}
	index := n.fsm.Applied()
	verified, err := n.verifier.get(ctx)
	if err != nil {
		return 0, asWait(err)
	}
	if verified != term {
		return 0, registry.ErrNotLeader
	}
	return index, nil
}

// readRemote asks the leader, run by the reader.
func (n *Node) readRemote(ctx context.Context) (uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, n.opts.WriteTimeout)
	defer cancel()
	v := n.tracker.load()
	if v.id == "" || v.self {
		return 0, registry.ErrNotLeader
	}
	stop := n.cancelWhenReplaced(v, cancel)
	defer stop()
	client, err := n.peers.connected(ctx, v.address)
	if err != nil {
		return 0, fmt.Errorf("read index: %w", err)
	}
	resp, err := client.ReadIndex(ctx, &peerpb.ReadIndexRequest{})
	if err != nil {
		return 0, fmt.Errorf("read index: %w", err)
	}
	return indexIn(resp)
}

// indexIn is the index that a leader answered with. One that leads has applied something,
// so an answer without an index is that to another call: a stream that lost bytes on its
// way, which no network does but a broken proxy may, makes calls be taken for others, and
// index 0 would let any state pass for the latest.
func indexIn(resp *peerpb.ReadIndexResponse) (uint64, error) {
	switch {
	case resp.NotLeader:
		return 0, registry.ErrNotLeader
	case resp.Index == 0:
		return 0, errors.New("read index: the leader's answer holds none")
	}
	return resp.Index, nil
}

// SendBeats hands a batch of beats to the present leader and returns its verdicts; on
// the leader itself that is Options.OnBeats. It waits for no leader and for no lost
// connection, and repeats nothing: registry.ErrNoLeader when none is known,
// registry.ErrNotLeader when the one that was asked does not lead, else what went wrong.
func (n *Node) SendBeats(ctx context.Context, batch registry.BeatBatch) (registry.BeatAnswer, error) {
	v := n.tracker.load()
	switch {
	case v.id == "":
		return registry.BeatAnswer{}, registry.ErrNoLeader
	case v.self && n.opts.OnBeats == nil:
		return registry.BeatAnswer{}, registry.ErrNotLeader
	case v.self:
		return n.opts.OnBeats(ctx, batch)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := n.cancelWhenReplaced(v, cancel)
	defer stop()
	// Beats may be delivered twice, so there is no need to know whether they were sent. To
	// wait for the connection to a leader that has died would hold up every client.
	client, err := n.peers.client(v.address)
	if err != nil {
		return registry.BeatAnswer{}, registry.ErrNoLeader.Because("leader " + v.id + " cannot be reached")
	}
	resp, err := client.Beats(ctx, wire.EncodeBeats(batch))
	if err != nil {
		return registry.BeatAnswer{}, fmt.Errorf("send beats to %s: %w", v.id, err)
	}
	if resp.NotLeader {
		return registry.BeatAnswer{}, registry.ErrNotLeader
	}
	if err := wire.DecodeFault(resp.Fault); err != nil {
		return registry.BeatAnswer{}, err
	}
	return wire.DecodeBeatAnswer(resp, len(batch.Leases), len(batch.Keys))
}

// asWait makes the end of a context a registry.ErrTimeout.
func asWait(err error) error {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return registry.ErrTimeout
	}
	return err
}

// awaitOpen waits until this node has applied the first command of its term, if it
// leads at all; false when it does not, or not soon.
func (n *Node) awaitOpen(ctx context.Context) bool {
	for {
		v := n.tracker.load()
		if v.self {
			return true
		}
		if !n.leadsForRaft() || n.hung() {
			return false
		}
		timer := time.NewTimer(retryPause)
		select {
		case <-v.replaced:
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return false
		}
		timer.Stop()
	}
}
