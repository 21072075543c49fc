package fsm

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/rollcall-io/rollcall/internal/wire"
	"github.com/rollcall-io/rollcall/registry"
)

// Level is the highest feature level that this build can apply.
const Level = wire.Level

// Options are the settings of an FSM. The zero value works.
type Options struct {
	// Logger gets divergence, restores and listeners' panics; nil means none.
	Logger hclog.Logger
	// Metrics is where the metrics are registered; nil means nowhere.
	Metrics prometheus.Registerer
	// Fatal is called with an entry that this build cannot apply, before anything of its
	// batch is. It should end the process; nil means panic. When it returns, the FSM
	// answers every further batch and snapshot with the same error and applies nothing.
	Fatal func(error)
	// FeedCapacity bounds the services that wait in the change feed, 0 means
	// DefaultFeedCapacity. Beyond it all are replaced by one resync.
	FeedCapacity int
}

// FSM is the replicated state machine. Raft calls Apply, ApplyBatch, Snapshot and
// Restore from one goroutine; all other methods are safe for concurrent use.
type FSM struct {
	log     hclog.Logger
	fatal   func(error)
	metrics *metrics
	feed    *feed
	waiters waiters
	broken  error // set once by an entry that cannot be applied; Raft's goroutine only

	// applied follows state.index and is stored under mu, so that who sees an index here
	// and then takes mu sees the state of that index.
	applied atomic.Uint64

	// mu guards all below. It is taken before feed.mu and waiters.mu.
	mu        sync.RWMutex
	state     *state
	tx        *tx
	ring      ring
	observers []*registration
	events    []EventListener
}

var _ raft.BatchingFSM = (*FSM)(nil)

// New is an empty state machine with its notifier running; end it with Close.
func New(o Options) *FSM {
	if o.Logger == nil {
		o.Logger = hclog.NewNullLogger()
	}
	if o.Fatal == nil {
		o.Fatal = func(err error) { panic(err) }
	}
	if o.FeedCapacity <= 0 {
		o.FeedCapacity = DefaultFeedCapacity
	}
	f := &FSM{log: o.Logger, fatal: o.Fatal, state: newState()}
	f.metrics = newMetrics(o.Metrics, f)
	f.tx = newTx(f)
	f.feed = newFeed(o.FeedCapacity, f)
	return f
}

// Close stops the change feed and waits for a listener that is being called. What still
// waits in the feed is dropped. Apply may go on; its changes are no longer handed out.
func (f *FSM) Close() { f.feed.close() }

// Apply applies one entry; see ApplyBatch.
func (f *FSM) Apply(l *raft.Log) any { return f.ApplyBatch([]*raft.Log{l})[0] }

// ApplyBatch applies committed entries in order, under one lock, and returns one
// response for each: of a command entry []registry.Result, one for each command; of
// others nil. All entries are decoded before any is applied: one that cannot be goes to
// Options.Fatal, and the responses are that error.
func (f *FSM) ApplyBatch(logs []*raft.Log) []any {
	timer := f.metrics.applyStarts()
	responses := make([]any, len(logs))
	entries, err := f.decode(logs)
	if err != nil {
		for i := range responses {
			responses[i] = err
		}
		return responses
	}
	f.mu.Lock()
	for i, l := range logs {
		if l.Type == raft.LogCommand {
			responses[i] = f.tx.entry(l, &entries[i])
		}
		f.state.index, f.state.term = l.Index, l.Term
		f.ring.add(l.Index, f.state.sum)
	}
	f.tx.flush()
	applied := f.state.index
	f.applied.Store(applied)
	f.mu.Unlock()
	f.waiters.wake(applied)
	f.metrics.applyEnds(timer, len(logs), f.tx)
	return responses
}

// decode reads every command entry of a batch, or reports the first that this build
// cannot apply.
func (f *FSM) decode(logs []*raft.Log) ([]registry.Entry, error) {
	if f.broken != nil {
		return nil, f.broken
	}
	entries := make([]registry.Entry, len(logs))
	for i, l := range logs {
		if l.Type != raft.LogCommand {
			continue
		}
		entry, err := wire.DecodeEntry(l.Data)
		if err == nil {
			err = tooNew(entry)
		}
		if err != nil {
			f.broken = fmt.Errorf("apply entry %d of term %d: %w: nothing of it was applied; "+
				"the log was written by a newer rollcall or is damaged: run the newest version that any member runs",
				l.Index, l.Term, err)
			f.fatal(f.broken)
			return nil, f.broken
		}
		entries[i] = entry
	}
	return entries, nil
}

// tooNew reports an entry that raises the feature level beyond this build.
func tooNew(entry registry.Entry) error {
	for _, c := range entry.Commands {
		if level, is := c.(registry.FeatureLevel); is && level.Level > Level {
			return fmt.Errorf("feature level %d is unknown, the highest known is %d", level.Level, Level)
		}
	}
	return nil
}
