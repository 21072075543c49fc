package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	boltdb "github.com/hashicorp/raft-boltdb/v2"
	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"
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
	// Fatal is told when a write to the stable store fails; Raft cannot go on then.
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
}

// Open opens or makes the stores of a data directory. When another process has it
// open the error matches ErrLocked and names the directory.
func Open(opts Options) (*Store, error) {
	if err := os.MkdirAll(opts.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("make data directory: %w", err)
	}
	bolt, err := openBolt(opts)
	if err != nil {
		return nil, err
	}
	t := newTimer(opts.Observe)
	l := &log{disk: bolt, timer: t, sizes: sizes{step: opts.SizeStep}}
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
	return &Store{
		Log:       cached,
		Stable:    &stable{bolt: bolt, timer: t, fatal: opts.Fatal},
		Snapshots: snapshots,
		bolt:      bolt, timer: t, log: l,
	}, nil
}

func openBolt(opts Options) (*boltdb.BoltStore, error) {
	path := filepath.Join(opts.Dir, "raft.db")
	bolt, err := boltdb.New(boltdb.Options{
		Path: path,
		BoltOptions: &bbolt.Options{
			Timeout: opts.LockTimeout,
			// After a long deletion the freelist holds 100,000 pages; written with every
			// append it makes each of them six times as slow.
			NoFreelistSync: true,
			FreelistType:   bbolt.FreelistMapType,
		},
		// Equal on all nodes and for the life of the data; see the transport.
		MsgpackUseNewTimeFormat: true,
	})
	if errors.Is(err, bolterrors.ErrTimeout) {
		return nil, fmt.Errorf("%w: %s (stop that one, or give this one another with --data-dir)", ErrLocked, opts.Dir)
	}
	if err != nil {
		return nil, fmt.Errorf("open log store %s: %w", path, err)
	}
	return bolt, nil
}

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

// Incarnation is the incarnation that the files belong to, empty for fresh ones.
func (s *Store) Incarnation() (string, error) {
	b, err := s.bolt.Get(keyIncarnation)
	if errors.Is(err, boltdb.ErrKeyNotFound) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read incarnation: %w", err)
	}
	return string(b), nil
}

// SetIncarnation marks the files.
func (s *Store) SetIncarnation(incarnation string) error {
	if err := s.bolt.Set(keyIncarnation, []byte(incarnation)); err != nil {
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

func isTemporary(name string) bool { return strings.HasSuffix(name, ".tmp") }
