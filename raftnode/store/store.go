package store

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	boltdb "github.com/hashicorp/raft-boltdb/v2"
)

// Options make a Store.
type Options struct {
	// Dir is the data directory; it is made when missing.
	Dir string
	// Retain is the number of snapshots kept. At least 1.
	Retain int
	// CacheEntries is the number of newest log entries kept in memory. Entries may have
	// 256 KiB, so it is a matter of memory too.
	CacheEntries int
	// SizeStep is to how many bytes the sizes of entries are known; see Store.Within.
	SizeStep uint64
	// LockTimeout bounds the wait for another process that has the directory open.
	LockTimeout time.Duration
	// Fatal is told when a write to the stable store fails, and after Guard when something
	// on disk is damaged, with an error that matches ErrDamaged; Raft cannot go on then.
	Fatal func(error)
	// Wrap replaces the log on disk by another around it, in tests of a faulty disk; may
	// be nil.
	Wrap func(raft.LogStore) raft.LogStore
	// Observe is told the duration of each call; may be nil.
	Observe func(op string, took time.Duration, err error)
	Log     hclog.Logger
}

// ErrLocked says that another process has the data directory open.
var ErrLocked = errors.New("data directory is in use by another process")

// keyIncarnation marks, beside Raft's own keys, which incarnation the file belongs to.
var keyIncarnation = []byte("rollcall-incarnation")

// Store is the log, the stable store and the snapshots of one node. Methods are safe
// for concurrent use as far as Raft needs it.
type Store struct {
	// Log is what Raft appends to: the measured bbolt log behind a small cache.
	Log raft.LogStore
	// Stable holds term and vote.
	Stable raft.StableStore
	// Snapshots holds the newest snapshots.
	Snapshots *Snapshots

	bolt  *boltdb.BoltStore
	timer *timer
	log   *log
	votes *stable
	guard *guard
}

// Open opens or makes the stores of a data directory. When another process has it
// open the error matches ErrLocked and names the directory. The error of a file that bbolt
// cannot make sense of matches ErrDamaged.
func Open(opts Options) (*Store, error) {
	if err := os.MkdirAll(opts.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("make data directory: %w", err)
	}
	g := &guard{dir: opts.Dir, fatal: opts.Fatal, log: opts.Log}
	bolt, err := openBolt(opts, g)
	if err != nil {
		return nil, err
	}
	t := newTimer(opts.Observe)
	l := &log{disk: bolt, timer: t, guard: g, sizes: sizes{step: opts.SizeStep}}
	if opts.Wrap != nil {
		l.disk = opts.Wrap(bolt)
	}
	cached, err := raft.NewLogCache(opts.CacheEntries, l)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open log cache: %w", err), bolt.Close())
	}
	snapshots, err := openSnapshots(opts)
	if err != nil {
		return nil, errors.Join(err, bolt.Close())
	}
	l.snapshot = snapshots.LastIndex
	votes := &stable{bolt: bolt, timer: t, guard: g, fatal: opts.Fatal}
	return &Store{
		Log:       cached,
		Stable:    votes,
		Snapshots: snapshots,
		bolt:      bolt, timer: t, log: l, votes: votes, guard: g,
	}, nil
}

// Guard makes damage the end of the process, by way of Options.Fatal. Before, while nothing
// runs on the store, it is an error of the call that met it.
func (s *Store) Guard() { s.guard.armed.Store(true) }

// Close closes the files. Nothing may use the store afterwards.
func (s *Store) Close() error {
	if err := s.bolt.Close(); err != nil {
		return fmt.Errorf("close log store: %w", err)
	}
	return nil
}

// HasState tells whether there is anything that Raft wrote.
func (s *Store) HasState() (bool, error) {
	has, err := raft.HasExistingState(s.Log, s.Stable, s.Snapshots)
	if err != nil {
		return false, fmt.Errorf("look for raft state: %w", err)
	}
	return has, nil
}

// Incarnation is the incarnation that the files belong to, empty for fresh ones. It has no
// checksum: whoever asks compares it with the identity file.
func (s *Store) Incarnation() (incarnation string, err error) {
	err = s.guard.run("read", func() error {
		b, err := s.bolt.Get(keyIncarnation)
		if errors.Is(err, boltdb.ErrKeyNotFound) {
			return nil
		}
		incarnation = string(b)
		return err
	})
	if err != nil {
		return "", fmt.Errorf("read incarnation: %w", err)
	}
	return incarnation, nil
}

// SetIncarnation marks the files.
func (s *Store) SetIncarnation(incarnation string) error {
	if err := s.votes.put(keyIncarnation, []byte(incarnation)); err != nil {
		return fmt.Errorf("write incarnation: %w", err)
	}
	return nil
}

// Hanging is for how long the slowest call now running has been running.
func (s *Store) Hanging() time.Duration { return s.timer.oldest() }

// Appended counts the bytes appended since the store was opened.
func (s *Store) Appended() uint64 { return s.log.bytes.Load() }

// Within is how many of the newest entries have no more than so many bytes together, to
// about a 256th of that. false when all that were appended since the store was opened have.
func (s *Store) Within(bytes uint64) (entries uint64, bounded bool) { return s.log.sizes.within(bytes) }

// After is how many bytes the entries above an index have that were appended since the
// store was opened, less at most Options.SizeStep and what one call appended.
func (s *Store) After(index uint64) uint64 { return s.log.sizes.after(index) }

func isTemporary(name string) bool { return strings.HasSuffix(name, ".tmp") }
