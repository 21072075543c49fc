package store

import (
	"errors"
	"fmt"
)

// ErrDamaged says that the state on disk cannot be put together again.
var ErrDamaged = errors.New("the newest snapshot is damaged")

// CheckReach finds a log that does not reach back to the newest snapshot that can be read.
// Raft takes an older one when the newest is damaged, and panics then at the first entry
// that is missing in between. Snapshots are read only when the log is too short for the
// oldest of them. The error matches ErrDamaged.
func (s *Store) CheckReach() error {
	first, err := s.Log.FirstIndex()
	if err != nil {
		return fmt.Errorf("read log: %w", err)
	}
	list, err := s.Snapshots.List()
	if err != nil {
		return fmt.Errorf("list snapshots: %w", err)
	}
	if len(list) == 0 || first <= list[len(list)-1].Index+1 {
		return nil
	}
	for _, meta := range list {
		_, content, err := s.Snapshots.Open(meta.ID)
		if err != nil {
			continue
		}
		content.Close()
		if first <= meta.Index+1 {
			return nil
		}
		return fmt.Errorf("%w, the one before is of index %d and the log begins at %d", ErrDamaged, meta.Index, first)
	}
	return ErrDamaged
}
