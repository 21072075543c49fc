package raftnode

import (
	"context"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/rollcall-io/rollcall/internal/wire"
	"github.com/rollcall-io/rollcall/internal/wire/peerpb"
	"github.com/rollcall-io/rollcall/raftnode/batch"
	"github.com/rollcall-io/rollcall/registry"
)

const (
	// forwardMargin is what the leader's answer may take beyond the commands' time.
	forwardMargin = 200 * time.Millisecond
	// replacedGrace is how long an answer of a leader that has been replaced is waited
	// for: one that hands over still answers what it had in flight.
	replacedGrace = 100 * time.Millisecond
)

// forwarder carries commands to the leader, packed like entries.
type forwarder struct {
	node  *Node
	queue *batch.Queue
}

func newForwarder(n *Node) *forwarder {
	return &forwarder{node: n, queue: batch.NewQueue(batch.Limits{
		Commands: queueCommands, Bytes: queueBytes, BatchCommands: entryCommands, BatchBytes: entryBytes, Deepen: callAt,
	}, forwardCalls)}
}

// forward hands one command to the leader and waits for its outcome.
func (n *Node) forward(ctx context.Context, encoded []byte) wire.Outcome {
	g := batch.NewGroup(1)
	g.Items[0].Encoded = encoded
	g.Items[0].Deadline, _ = ctx.Deadline()
	n.forwarder.queue.Put(g, batch.Client)
	outcomes, err := g.Wait(ctx)
	if err != nil {
		return wire.Outcome{Err: asError(err)}
	}
	return outcomes[0]
}

// send prepares one call; it is batch.Send.
func (f *forwarder) send(items []*batch.Item) func() {
	v := f.node.tracker.load()
	if v.id == "" || v.self {
		return func() { f.finish(items, registry.ErrNotLeader, "no_leader") }
	}
	return func() { f.call(items, v) }
}

// call makes the call to the leader of a view and, if it turns out not to lead, one
// more to the node that it names.
func (f *forwarder) call(items []*batch.Item, v *view) {
	began := time.Now()
	resp, fault, outcome := f.once(items, v, v.address)
	if fault == nil && resp.NotLeader {
		if hint := resp.Leader; hint.GetAddress() != "" && hint.Address != v.address && hint.Address != f.node.advertise {
			resp, fault, outcome = f.once(items, v, hint.Address)
		}
	}
	f.node.m.forwardSeconds.Observe(time.Since(began).Seconds())
	if fault != nil {
		f.finish(items, fault, outcome)
		return
	}
	if resp.NotLeader {
		f.finish(items, registry.ErrNotLeader, "not_leader")
		return
	}
	outcomes, err := wire.DecodeOutcomes(resp, len(items))
	if err != nil {
		f.finish(items, registry.ErrUncertain.Because(err.Error()), "uncertain")
		return
	}
	// Before the callers hear of it: they wait for the entry to be applied here.
	if last := resp.Last; last != nil {
		f.node.transport.news.tell(entryID{last.Index, last.Term})
	}
	f.node.m.forwards.WithLabelValues("ok").Inc()
	f.node.m.forwarded.WithLabelValues("ok").Add(float64(len(items)))
	f.queue.Finish(items, func(i int) wire.Outcome { return outcomes[i] })
}

func (f *forwarder) finish(items []*batch.Item, fault *registry.Error, outcome string) {
	f.node.m.forwards.WithLabelValues(outcome).Inc()
	f.node.m.forwarded.WithLabelValues(outcome).Add(float64(len(items)))
	f.queue.Finish(items, func(int) wire.Outcome { return wire.Outcome{Err: fault} })
}

// once makes one call to one address. A fault of ErrNotLeader means that nothing was
// sent; after that no failure tells what became of the commands.
func (f *forwarder) once(items []*batch.Item, v *view, address string) (*peerpb.ProposeResponse, *registry.Error, string) {
	now := time.Now()
	latest := now
	for _, it := range items {
		if it.Deadline.After(latest) {
			latest = it.Deadline
		}
	}
	ctx, cancel := context.WithDeadline(context.Background(), latest.Add(forwardMargin))
	defer cancel()
	stop := f.node.cancelWhenReplaced(v, cancel)
	defer stop()
	client, err := f.node.peers.connected(ctx, address)
	if err != nil {
		return nil, registry.ErrNotLeader, "unreachable"
	}
	resp, err := client.Propose(ctx, f.request(items, time.Now()))
	switch {
	case err == nil:
		return resp, nil, "ok"
	case f.node.tracker.load().succeeds(v):
		return nil, registry.ErrUncertain.Because("outcome unknown: the leader was replaced"), "replaced"
	case status.Code(err) == codes.Unimplemented, status.Code(err) == codes.InvalidArgument:
		return nil, registry.ErrUnsupported.Because("leader refuses the call: " + err.Error()), "refused"
	}
	return nil, registry.ErrUncertain.Because("outcome unknown: " + err.Error()), "uncertain"
}

func (f *forwarder) request(items []*batch.Item, now time.Time) *peerpb.ProposeRequest {
	size := 0
	for _, it := range items {
		size += len(it.Encoded)
	}
	req := &peerpb.ProposeRequest{
		Node: f.node.id, Commands: make([]byte, 0, size),
		Lengths: make([]uint32, len(items)), RemainingMs: make([]uint32, len(items)),
	}
	for i, it := range items {
		req.Commands = append(req.Commands, it.Encoded...)
		req.Lengths[i] = uint32(len(it.Encoded))
		req.RemainingMs[i] = uint32(max(1, it.Deadline.Sub(now).Milliseconds()))
	}
	return req
}

// cancelWhenReplaced calls cancel soon after another leader than v's is known. What it
// returns ends the watch and waits for its end.
func (n *Node) cancelWhenReplaced(v *view, cancel func()) (stop func()) {
	quit, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for now := v; ; now = n.tracker.load() {
			if now != v && now.succeeds(v) {
				break
			}
			select {
			case <-quit:
				return
			case <-now.replaced:
			}
		}
		timer := time.NewTimer(replacedGrace)
		defer timer.Stop()
		select {
		case <-quit:
		case <-timer.C:
			cancel()
		}
	}()
	return func() { close(quit); <-ended }
}
