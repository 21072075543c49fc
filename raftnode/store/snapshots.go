package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"
)

// Snapshots is the file snapshot store, measured.
type Snapshots struct {
	*raft.FileSnapshotStore

	observe func(op string, took time.Duration, err error)
	last    atomic.Uint64
}

// openSnapshots opens the store after it dropped what a crash left half written.
func openSnapshots(opts Options) (*Snapshots, error) {
	dir := filepath.Join(opts.Dir, "snapshots")
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("list snapshots: %w", err)
	}
	for _, e := range entries {
		if !isTemporary(e.Name()) {
			continue
		}
		if err := os.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
			return nil, fmt.Errorf("drop unfinished snapshot: %w", err)
		}
	}
	files, err := raft.NewFileSnapshotStoreWithLogger(opts.Dir, opts.Retain, opts.Log)
	if err != nil {
		return nil, fmt.Errorf("open snapshot store: %w", err)
	}
	s := &Snapshots{FileSnapshotStore: files, observe: opts.Observe}
	if s.observe == nil {
		s.observe = func(string, time.Duration, error) {}
	}
	if list, err := files.List(); err == nil && len(list) > 0 {
		s.last.Store(list[0].Index)
	}
	return s, nil
}

// LastIndex is the index of the newest snapshot, 0 without one.
func (s *Snapshots) LastIndex() uint64 { return s.last.Load() }

// Create starts a snapshot; its duration is observed when it is closed or cancelled.
func (s *Snapshots) Create(version raft.SnapshotVersion, index, term uint64, configuration raft.Configuration,
	configurationIndex uint64, trans raft.Transport,
) (raft.SnapshotSink, error) {
	sink, err := s.FileSnapshotStore.Create(version, index, term, configuration, configurationIndex, trans)
	if err != nil {
		s.observe("snapshot", 0, err)
		return nil, err
	}
	return &sinkTimer{SnapshotSink: sink, store: s, index: index, began: time.Now()}, nil
}

type sinkTimer struct {
	raft.SnapshotSink

	store *Snapshots
	index uint64
	began time.Time
}

var errCancelled = errors.New("snapshot cancelled")

// Close finishes the snapshot.
func (t *sinkTimer) Close() error {
	err := t.SnapshotSink.Close()
	t.store.observe("snapshot", time.Since(t.began), err)
	if err == nil {
		t.store.last.Store(t.index)
	}
	return err
}

// Cancel drops the snapshot.
func (t *sinkTimer) Cancel() error {
	t.store.observe("snapshot", time.Since(t.began), errCancelled)
	return t.SnapshotSink.Cancel()
}
