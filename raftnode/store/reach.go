package store

import (
	"errors"
	"fmt"

	"github.com/hashicorp/raft"
	boltdb "github.com/hashicorp/raft-boltdb/v2"
)

// Check reads what Raft will need: every entry of the log, and snapshots where the log
// does not reach back to the oldest. Raft itself would take an older snapshot when the
// newest is damaged, and panic at the first entry that is missing behind it. It takes
// about as long as Raft takes to read the log at its start. The error of anything that is
// not what was written matches ErrDamaged.
func (s *Store) Check() error {
	list, err := s.Snapshots.List()
	if err != nil {
		return fmt.Errorf("list snapshots: %w", err)
	}
	need, err := s.checkEntries(list)
	if err != nil {
		return err
	}
	if err := s.checkVote(); err != nil {
		return err
	}
	if need == 0 || len(list) > 0 && need <= list[len(list)-1].Index {
		return nil
	}
	for _, meta := range list {
		_, content, err := s.Snapshots.Open(meta.ID)
		if err != nil {
			continue
		}
		content.Close()
		if need <= meta.Index {
			return nil
		}
		return s.guard.damagef("the newest snapshot cannot be read, the one before is of index %d and the log is whole from %d on", meta.Index, need+1)
	}
	return s.guard.damagef("the log is whole from entry %d on, and there is no snapshot of what was before that can be read", need+1)
}

// checkEntries reads the entries and returns the index up to which a snapshot is needed,
// since something is missing: the beginning, what lies before a snapshot that was sent by
// the leader, or all of the newest snapshot.
func (s *Store) checkEntries(list []*raft.SnapshotMeta) (need uint64, err error) {
	first, err := s.log.FirstIndex()
	if err != nil {
		return 0, fmt.Errorf("read log: %w", err)
	}
	last, err := s.log.LastIndex()
	if err != nil {
		return 0, fmt.Errorf("read log: %w", err)
	}
	if len(list) > 0 && last < list[0].Index {
		need = list[0].Index
	}
	if first == 0 {
		return need, nil
	}
	need = max(need, first-1)
	for index := first; index <= last; index++ {
		var entry raft.Log
		err := s.log.GetLog(index, &entry)
		if errors.Is(err, raft.ErrLogNotFound) {
			index = snapshotBehind(list, index)
			need = max(need, index)
		} else if err != nil {
			return 0, err
		}
	}
	return need, nil
}

// snapshotBehind is the index of the first snapshot that holds an entry.
func snapshotBehind(list []*raft.SnapshotMeta, index uint64) uint64 {
	for i := len(list) - 1; i >= 0; i-- { // the oldest is the last
		if list[i].Index >= index {
			return list[i].Index
		}
	}
	return index
}

// checkVote reads the vote, which Raft does only when it is asked for another, and compares
// the term with the last entry: it is written down before any entry of it. The first
// configuration alone is no such entry; see ForgetFounding.
func (s *Store) checkVote() error {
	if _, err := s.number(keyVoteTerm); err != nil {
		return err
	}
	if _, err := s.Stable.Get(keyVoteCandidate); err != nil && !errors.Is(err, boltdb.ErrKeyNotFound) {
		return err
	}
	term, err := s.number(keyTerm)
	if err != nil {
		return err
	}
	last, err := s.log.LastIndex()
	if err != nil || last <= 1 {
		return err
	}
	var entry raft.Log
	if err := s.log.GetLog(last, &entry); err != nil {
		return err
	}
	if entry.Term > term {
		return s.guard.damagef("the term in raft.db is %d, the last log entry is of term %d", term, entry.Term)
	}
	return nil
}
