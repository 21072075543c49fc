package store

import (
	"sync/atomic"

	"github.com/hashicorp/raft"
	boltdb "github.com/hashicorp/raft-boltdb/v2"
)

// deleteChunk bounds the entries that one transaction deletes from the head of the
// log: bbolt has one writer, and an append waits for it.
const deleteChunk = 5000

// log is the bbolt log, measured.
type log struct {
	disk  raft.LogStore // bbolt, save in tests
	timer *timer

	bytes atomic.Uint64
	sizes sizes
}

func (l *log) FirstIndex() (uint64, error) { return l.disk.FirstIndex() }

func (l *log) LastIndex() (uint64, error) { return l.disk.LastIndex() }

func (l *log) GetLog(index uint64, entry *raft.Log) error {
	defer l.timer.start("get")(nil)
	return l.disk.GetLog(index, entry)
}

func (l *log) StoreLog(entry *raft.Log) error { return l.StoreLogs([]*raft.Log{entry}) }

func (l *log) StoreLogs(entries []*raft.Log) error {
	done := l.timer.start("append")
	err := l.disk.StoreLogs(entries)
	done(err)
	if err == nil {
		size := 0
		for _, e := range entries {
			size += len(e.Data)
		}
		l.bytes.Add(uint64(size))
		if len(entries) > 0 {
			l.sizes.note(entries[len(entries)-1].Index, l.bytes.Load())
		}
	}
	return err
}

// DeleteRange deletes the entries from lo to hi, both included. A head is deleted
// in ascending pieces: a crash in between leaves a shorter log without a hole. A tail,
// which conflicts with the leader's log, goes in one transaction, since a hole would
// be left otherwise.
func (l *log) DeleteRange(lo, hi uint64) error {
	first, err := l.disk.FirstIndex()
	if err != nil {
		return err
	}
	if lo > first {
		return l.deleteOnce(lo, hi)
	}
	for ; lo <= hi; lo += deleteChunk {
		if err := l.deleteOnce(lo, min(hi, lo+deleteChunk-1)); err != nil {
			return err
		}
	}
	return nil
}

func (l *log) deleteOnce(lo, hi uint64) error {
	done := l.timer.start("delete")
	err := l.disk.DeleteRange(lo, hi)
	done(err)
	return err
}

// stable holds term and vote. Raft panics when they cannot be written; fatal is told
// before, so that the process ends with a message and an exit code of its own.
type stable struct {
	bolt  *boltdb.BoltStore
	timer *timer
	fatal func(error)
}

func (s *stable) Set(key, value []byte) error {
	return s.write(func() error { return s.bolt.Set(key, value) })
}

func (s *stable) SetUint64(key []byte, value uint64) error {
	return s.write(func() error { return s.bolt.SetUint64(key, value) })
}

func (s *stable) Get(key []byte) ([]byte, error) { return s.bolt.Get(key) }

func (s *stable) GetUint64(key []byte) (uint64, error) { return s.bolt.GetUint64(key) }

func (s *stable) write(op func() error) error {
	done := s.timer.start("vote")
	err := op()
	done(err)
	if err != nil && s.fatal != nil {
		s.fatal(err)
	}
	return err
}
