package raftnode

import (
	"context"
	"encoding/json"
	"io"
	"sync"

	"github.com/hashicorp/raft"

	"github.com/rollcall-io/rollcall/internal/wire"
	"github.com/rollcall-io/rollcall/registry"
)

// testFSM counts registrations by address and keeps what a Node asks of it.
type testFSM struct {
	mu      sync.Mutex
	changed chan struct{}
	state   testState
	terms   []uint64
	writing func() // runs while a snapshot is written
}

type testState struct {
	Index     uint64
	Cluster   string
	Instances map[string]int // "ip:port service" -> times registered
}

func newTestFSM() *testFSM {
	return &testFSM{changed: make(chan struct{}), state: testState{Instances: make(map[string]int)}}
}

func (f *testFSM) Apply(l *raft.Log) any { return f.ApplyBatch([]*raft.Log{l})[0] }

func (f *testFSM) ApplyBatch(logs []*raft.Log) []any {
	f.mu.Lock()
	defer f.mu.Unlock()
	answers := make([]any, len(logs))
	for i, l := range logs {
		f.state.Index = l.Index
		if l.Type == raft.LogCommand {
			answers[i] = f.apply(l)
		}
	}
	close(f.changed)
	f.changed = make(chan struct{})
	return answers
}

func (f *testFSM) apply(l *raft.Log) []registry.Result {
	entry, err := wire.DecodeEntry(l.Data)
	if err != nil {
		panic(err)
	}
	results := make([]registry.Result, len(entry.Commands))
	for i, c := range entry.Commands {
		results[i] = registry.Result{Index: l.Index}
		switch c := c.(type) {
		case registry.TermStart:
			f.terms = append(f.terms, c.Term)
		case registry.ClusterInit:
			f.state.Cluster = c.ClusterID
		case registry.Register:
			f.state.Instances[nameOf(c)]++
			results[i].Changed = true
		case registry.ServiceDelete:
			results[i].Err = registry.ErrServiceNotFound
		}
	}
	return results
}

func nameOf(c registry.Register) string {
	key, _ := registry.KeyOf(c)
	return key.String()
}

func (f *testFSM) Snapshot() (raft.FSMSnapshot, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	b, err := json.Marshal(f.state)
	return testSnapshot{b, f.writing}, err
}

type testSnapshot struct {
	state   []byte
	writing func()
}

func (s testSnapshot) Persist(sink raft.SnapshotSink) error {
	if s.writing != nil {
		s.writing()
	}
	if _, err := sink.Write(s.state); err != nil {
		return err
	}
	return sink.Close()
}

func (testSnapshot) Release() {}

func (f *testFSM) Restore(r io.ReadCloser) error {
	defer r.Close()
	state := testState{}
	if err := json.NewDecoder(r).Decode(&state); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.state = state
	close(f.changed)
	f.changed = make(chan struct{})
	return nil
}

func (f *testFSM) Applied() uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.state.Index
}

func (f *testFSM) WaitApplied(ctx context.Context, index uint64) error {
	for {
		f.mu.Lock()
		reached, changed := f.state.Index >= index, f.changed
		f.mu.Unlock()
		if reached {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return registry.ErrTimeout
		}
	}
}

func (f *testFSM) ClusterID() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.state.Cluster
}

// Digest moves with every entry, as the real one does with the last entry time.
func (f *testFSM) Digest() (uint64, registry.Digest) {
	at := f.Applied()
	return at, registry.Digest{byte(at), byte(at >> 8)}
}

func (f *testFSM) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.state.Instances)
}

// times tells how often an instance was registered.
func (f *testFSM) times(c registry.Register) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.state.Instances[nameOf(c)]
}
