package raftnode

import (
	"errors"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"github.com/rollcall-io/rollcall/internal/wire"
	"github.com/rollcall-io/rollcall/raftnode/batch"
	"github.com/rollcall-io/rollcall/registry"
)

// enqueueTimeout bounds the wait for room in Raft's own queue. It holds more entries
// than the proposer has in flight, so this only ends when Raft's main loop hangs.
const enqueueTimeout = 500 * time.Millisecond

// proposer packs commands into log entries while this node leads.
type proposer struct {
	node  string
	wall  func() time.Time // stamps entries
	queue *batch.Queue
	raft  func() *raft.Raft
	stuck func() // told of each refusal because a transfer is in progress
	moved func() // told of each entry that went through
	m     *metrics

	term     atomic.Uint64 // of which it is open, 0 when closed
	inFlight atomic.Int32
}

func newProposer(node string, r func() *raft.Raft, stuck, moved func(), m *metrics) *proposer {
	p := &proposer{node: node, wall: time.Now, raft: r, stuck: stuck, moved: moved, m: m}
	p.queue = batch.NewQueue(batch.Limits{
		Commands: queueCommands, Bytes: queueBytes, BatchCommands: entryCommands, BatchBytes: entryBytes, Deepen: deepenAt, Gather: true,
	}, inFlight)
	p.queue.Close(registry.ErrNotLeader)
	return p
}

func (p *proposer) openTerm() uint64 { return p.term.Load() }

// open lets commands in for a term.
func (p *proposer) open(term uint64) {
	p.term.Store(term)
	p.queue.Open()
}

// close refuses what waits and what comes. Entries in flight end by themselves.
func (p *proposer) close() {
	p.term.Store(0)
	p.queue.Close(registry.ErrNotLeader)
}

// send appends one entry; it is batch.Send.
func (p *proposer) send(items []*batch.Item) func() {
	term, r := p.term.Load(), p.raft()
	// Between two terms of this node another may have led: what was decided in the one
	// must not be appended in the other.
	if r == nil || term == 0 || r.CurrentTerm() != term {
		return func() { p.finish(items, registry.ErrNotLeader) }
	}
	commands := make([][]byte, len(items))
	for i, it := range items {
		commands[i] = it.Encoded
	}
	began := time.Now()
	data := wire.PackEntry(p.node, term, p.wall().UnixMilli(), commands)
	p.m.entryCommands.Observe(float64(len(items)))
	p.m.entryBytes.Observe(float64(len(data)))
	p.m.inFlight.Set(float64(p.inFlight.Add(1)))
	future := r.ApplyLog(raft.Log{Data: data}, enqueueTimeout)
	return func() {
		err := future.Error()
		p.m.inFlight.Set(float64(p.inFlight.Add(-1)))
		p.m.entrySeconds.Observe(time.Since(began).Seconds())
		p.settle(items, term, future, err)
	}
}

// settle fans the results of an entry out.
func (p *proposer) settle(items []*batch.Item, term uint64, future raft.ApplyFuture, err error) {
	if err != nil {
		if errors.Is(err, raft.ErrLeadershipTransferInProgress) {
			p.stuck()
		}
		p.finish(items, faultOf(err))
		return
	}
	p.moved()
	results, ok := future.Response().([]registry.Result)
	if !ok || len(results) != len(items) {
		p.finish(items, registry.ErrUncertain.Because("the state machine gave no result"))
		return
	}
	p.queue.Finish(items, func(i int) wire.Outcome { return wire.Outcome{Result: results[i], Term: term} })
}

func (p *proposer) finish(items []*batch.Item, fault *registry.Error) {
	p.m.proposeFaults.WithLabelValues(faultName(fault)).Add(float64(len(items)))
	p.queue.Finish(items, func(int) wire.Outcome { return wire.Outcome{Err: fault} })
}

// faultOf says what an error of Raft means for the commands of the entry.
func faultOf(err error) *registry.Error {
	switch {
	// Refused before the entry was appended.
	case errors.Is(err, raft.ErrNotLeader), errors.Is(err, raft.ErrLeadershipTransferInProgress):
		return registry.ErrNotLeader
	case errors.Is(err, raft.ErrEnqueueTimeout):
		return registry.ErrOverloaded
	}
	// Appended here, perhaps elsewhere too: leadership lost, shut down, a store error.
	return registry.ErrUncertain.Because("outcome unknown: " + err.Error())
}

// faultName is the metric label of a fault.
func faultName(e *registry.Error) string {
	switch e.Code {
	case registry.CodeNotLeader:
		return "not_leader"
	case registry.CodeNoLeader:
		return "no_leader"
	case registry.CodeOverloaded:
		return "overloaded"
	case registry.CodeUncertain:
		return "uncertain"
	case registry.CodeTimeout:
		return "timeout"
	case registry.CodeDiskFull:
		return "disk_full"
	}
	return "other"
}
