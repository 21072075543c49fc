package store

import (
	"errors"
	"fmt"

	"github.com/hashicorp/raft"
	boltdb "github.com/hashicorp/raft-boltdb/v2"
)

// The keys under which Raft keeps its term and vote.
var (
	keyTerm          = []byte("CurrentTerm")
	keyVoteTerm      = []byte("LastVoteTerm")
	keyVoteCandidate = []byte("LastVoteCand")
)

// Founding tells whether the state is nothing but the first configuration of a new
// cluster, or a part of it that a crash left: no entry behind it, no vote, no term in
// which there was an election, no snapshot. Nobody else can have such an entry: whoever
// sends it on has been elected and keeps a vote. The configuration is empty when the
// entry itself is missing.
func (s *Store) Founding() (c raft.Configuration, only bool, err error) {
	has, err := s.HasState()
	if err != nil || !has {
		return c, false, err
	}
	snapshots, err := s.Snapshots.List()
	if err != nil {
		return c, false, fmt.Errorf("list snapshots: %w", err)
	}
	last, err := s.Log.LastIndex()
	if err != nil {
		return c, false, fmt.Errorf("read log: %w", err)
	}
	term, err := s.number(keyTerm)
	if err != nil {
		return c, false, err
	}
	vote, err := s.number(keyVoteTerm)
	if err != nil {
		return c, false, err
	}
	if len(snapshots) > 0 || last > 1 || term > 1 || vote > 0 {
		return c, false, nil
	}
	if last == 0 {
		return c, true, nil
	}
	var entry raft.Log
	if err := s.Log.GetLog(1, &entry); err != nil {
		return c, false, fmt.Errorf("read the first entry: %w", err)
	}
	if entry.Type != raft.LogConfiguration || entry.Term > 1 {
		return c, false, nil
	}
	return raft.DecodeConfiguration(entry.Data), true, nil
}

// ForgetFounding drops what Founding describes; the store is as good as new then. Raft
// must not run. After a crash in between Founding still holds.
func (s *Store) ForgetFounding() error {
	if _, only, err := s.Founding(); err != nil || !only {
		return errors.Join(errors.New("there is more than the first configuration"), err)
	}
	if err := s.Stable.SetUint64(keyTerm, 0); err != nil {
		return fmt.Errorf("reset term: %w", err)
	}
	last, err := s.Log.LastIndex()
	if err == nil && last > 0 {
		err = s.Log.DeleteRange(1, last)
	}
	if err != nil {
		return fmt.Errorf("drop the first configuration: %w", err)
	}
	return nil
}

func (s *Store) number(key []byte) (uint64, error) {
	n, err := s.Stable.GetUint64(key)
	if err != nil && !errors.Is(err, boltdb.ErrKeyNotFound) {
		return 0, fmt.Errorf("read %s: %w", key, err)
	}
	return n, nil
}
