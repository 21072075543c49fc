package store

import (
	"encoding/binary"
	"errors"

	boltdb "github.com/hashicorp/raft-boltdb/v2"
)

// stable holds term and vote, each with a checksum behind it: a node that has forgotten
// its vote may give another. Raft panics when they cannot be written; fatal is told
// before, so that the process ends with a message and an exit code of its own.
type stable struct {
	bolt  *boltdb.BoltStore
	timer *timer
	guard *guard
	fatal func(error)
}

func (s *stable) Set(key, value []byte) error {
	done := s.timer.start("vote")
	err := s.put(key, seal(value))
	done(err)
	if err != nil && !errors.Is(err, ErrDamaged) && s.fatal != nil {
		s.fatal(err)
	}
	return err
}

func (s *stable) put(key, value []byte) error {
	return s.guard.run("write to", func() error {
		// The pages that the write will meet; see log.StoreLogs.
		_, _ = s.bolt.Get(key)
		return s.bolt.Set(key, value)
	})
}

func (s *stable) SetUint64(key []byte, value uint64) error {
	return s.Set(key, binary.BigEndian.AppendUint64(nil, value))
}

func (s *stable) Get(key []byte) (value []byte, err error) {
	err = s.guard.run("read", func() error {
		if value, err = s.bolt.Get(key); err != nil {
			return err // Raft knows a missing key by this very error
		}
		var matches bool
		if value, matches = unseal(value); !matches {
			return s.guard.damagef("%s in raft.db does not match its checksum", key)
		}
		return nil
	})
	return value, err
}

func (s *stable) GetUint64(key []byte) (uint64, error) {
	value, err := s.Get(key)
	if err != nil {
		return 0, err
	}
	if len(value) != 8 {
		return 0, s.guard.damagef("%s in raft.db has %d bytes, not 8", key, len(value))
	}
	return binary.BigEndian.Uint64(value), nil
}
