package fsm

import (
	"fmt"
	"io"

	"github.com/hashicorp/raft"

	"github.com/rollcall-io/rollcall/internal/wire"
	"github.com/rollcall-io/rollcall/registry"
)

// snapshot is the state at one index, by pointers to what is immutable. Raft persists it
// while Apply goes on.
type snapshot struct {
	metrics    *metrics
	header     wire.SnapshotHeader
	globals    wire.Globals
	switches   registry.Switches
	reg        *registry.State
	namespaces []registry.Namespace
	tombs      []tombstone
	accounts   *registry.Accounts
	digest     registry.Digest
}

var _ raft.FSMSnapshot = (*snapshot)(nil)

// Snapshot captures the state: it copies the maps of services and the list of
// tombstones, no service and no instance. After an entry that could not be applied it is
// an error: Raft counts that entry as applied, and a snapshot without it would be kept as
// one that holds it.
func (f *FSM) Snapshot() (raft.FSMSnapshot, error) {
	if f.broken != nil {
		return nil, f.broken
	}
	f.mu.RLock()
	defer f.mu.RUnlock()
	s := f.state
	return &snapshot{
		metrics: f.metrics,
		header: wire.SnapshotHeader{
			ClusterID: s.globals.ClusterID, Index: s.index, Term: s.term, Level: s.globals.Level, Time: s.globals.LastTime,
		},
		globals:    s.globals,
		switches:   s.switches,
		reg:        s.reg.Clone(),
		namespaces: s.records(),
		tombs:      s.tombs.copies(),
		accounts:   s.accounts,
		digest:     s.sum.digest(),
	}, nil
}

// Persist writes the snapshot to sink and closes it, or cancels it on an error.
func (s *snapshot) Persist(sink raft.SnapshotSink) error {
	start := wallClock()
	if err := s.write(sink); err != nil {
		_ = sink.Cancel() // the first error is the one to tell
		return fmt.Errorf("write snapshot of index %d: %w", s.header.Index, err)
	}
	if err := sink.Close(); err != nil {
		return fmt.Errorf("close snapshot of index %d: %w", s.header.Index, err)
	}
	s.metrics.snapshot.Observe(wallClock().Sub(start).Seconds())
	return nil
}

// Release lets go of the captured state.
func (s *snapshot) Release() { s.reg, s.namespaces, s.tombs, s.accounts = nil, nil, nil, nil }

// write writes the whole file. The order of records is fixed, so that the same state
// makes the same file.
func (s *snapshot) write(to io.Writer) error {
	w, err := newSnapshotWriter(to, s.header)
	if err != nil {
		return err
	}
	w.record(wire.AppendGlobals(w.scratch(), s.globals))
	w.record(wire.AppendSwitches(w.scratch(), s.switches))
	known := s.reg.Namespaces()
	for _, id := range known {
		w.record(wire.AppendKnown(w.scratch(), id))
	}
	for _, n := range s.namespaces {
		w.record(wire.AppendNamespace(w.scratch(), n))
	}
	for _, id := range known {
		for _, svc := range s.reg.Services(id) {
			w.record(wire.AppendService(w.scratch(), svc))
			for _, in := range svc.Instances() {
				w.record(wire.AppendInstance(w.scratch(), svc.Key, in))
			}
			if w.err != nil {
				return w.err
			}
		}
	}
	for _, t := range sortTombstones(s.tombs) {
		w.record(wire.AppendTombstone(w.scratch(), t.key, t.until))
	}
	writeAccounts(w, s.accounts)
	return w.finish(s.digest)
}
