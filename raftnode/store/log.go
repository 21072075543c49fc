package store

import (
	"cmp"
	"errors"
	"sync/atomic"

	"github.com/hashicorp/raft"
	bolterrors "go.etcd.io/bbolt/errors"
)

const (
	// deleteChunk bounds the entries that one transaction deletes from the head of the
	// log: bbolt has one writer, and an append waits for it.
	deleteChunk = 5000
	// siblings is how many entries behind a deletion are looked at before: the smallest
	// fill a page with about forty, and bbolt merges one that is nearly empty with the next.
	siblings = 64
)

// log is the bbolt log, measured, each entry with a checksum.
type log struct {
	disk  raft.LogStore // bbolt, save in tests
	timer *timer
	guard *guard
	// snapshot is the index of the newest snapshot. Entries up to it may be missing.
	snapshot func() uint64

	bytes atomic.Uint64
	sizes sizes
}

func (l *log) FirstIndex() (index uint64, err error) {
	err = l.guard.run("read", func() error { index, err = l.disk.FirstIndex(); return err })
	return index, err
}

func (l *log) LastIndex() (index uint64, err error) {
	err = l.guard.run("read", func() error { index, err = l.disk.LastIndex(); return err })
	return index, err
}

// GetLog reads an entry and compares it with its checksum. The error of one that is not
// what was written matches ErrDamaged; once Raft runs, the process ends with it, whether
// the entry was to be applied here or sent to a follower. raft.ErrLogNotFound is none that
// a snapshot has made superfluous, or that never was.
func (l *log) GetLog(index uint64, entry *raft.Log) error {
	defer l.timer.start("get")(nil)
	return l.guard.run("read", func() error {
		err := l.disk.GetLog(index, entry)
		switch {
		case errors.Is(err, bolterrors.ErrDatabaseNotOpen):
			return err
		case errors.Is(err, raft.ErrLogNotFound):
			return l.missing(index, entry)
		case err != nil:
			return l.guard.damagef("log entry %d in raft.db cannot be decoded: %v", index, err)
		}
		if wrong := verify(index, entry); wrong != "" {
			return l.guard.damagef("log entry %d in raft.db %s", index, wrong)
		}
		return nil
	})
}

// missing judges an entry that is not there. A follower that was given a snapshot keeps
// the entries that it had before, so there may be a gap up to the snapshot; behind it none.
func (l *log) missing(index uint64, entry *raft.Log) error {
	absent := func() (last uint64, superfluous bool, err error) {
		last, err = l.disk.LastIndex()
		return last, index > last || index <= l.snapshot(), err
	}
	// Raft compares with raft.ErrLogNotFound by ==.
	if _, superfluous, err := absent(); err != nil || superfluous {
		return cmp.Or(err, raft.ErrLogNotFound)
	}
	// What conflicted with a leader's log may have been replaced while this was asked.
	if err := l.disk.GetLog(index, entry); err == nil || !errors.Is(err, raft.ErrLogNotFound) {
		return err
	}
	last, superfluous, err := absent()
	if err != nil || superfluous {
		return cmp.Or(err, raft.ErrLogNotFound)
	}
	return l.guard.damagef("log entry %d in raft.db is missing, the log goes on to %d", index, last)
}

func (l *log) StoreLog(entry *raft.Log) error { return l.StoreLogs([]*raft.Log{entry}) }

// StoreLogs appends entries and gives those their checksums that have none; see stamp. An
// entry that does not match the one it came with is refused, and all with it.
func (l *log) StoreLogs(entries []*raft.Log) error {
	if err := stamp(entries); err != nil {
		return err
	}
	done := l.timer.start("append")
	err := l.guard.run("append to", func() error {
		// A panic inside of a transaction that writes cannot be caught: on its way out bbolt
		// reads all pages again, and panics in a goroutine of its own. So the pages that the
		// append will meet are read before.
		if _, err := l.disk.LastIndex(); err != nil {
			return err
		}
		return l.disk.StoreLogs(entries)
	})
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
	first, err := l.FirstIndex()
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
	err := l.guard.run("delete from", func() error {
		l.touch(lo, hi+siblings)
		return l.disk.DeleteRange(lo, hi)
	})
	done(err)
	return err
}

// touch reads the pages of some entries, for a panic to come where it can be caught; see
// StoreLogs. What the entries say does not matter any more.
func (l *log) touch(lo, hi uint64) {
	for index := lo; index <= hi; index++ {
		var entry raft.Log
		_ = l.disk.GetLog(index, &entry)
	}
}
