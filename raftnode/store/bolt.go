package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	boltdb "github.com/hashicorp/raft-boltdb/v2"
	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"
)

// fileName is the name of the bbolt file in the data directory.
const fileName = "raft.db"

// openBolt opens the file, or makes it. It is looked at before, since bbolt ends the
// process with a panic over pages that it cannot make sense of.
func openBolt(opts Options, g *guard) (bolt *boltdb.BoltStore, err error) {
	path := filepath.Join(opts.Dir, fileName)
	if err := checkFile(path, opts, g); err != nil {
		return nil, err
	}
	err = g.run("open", func() error {
		bolt, err = boltdb.New(boltdb.Options{
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
		return err
	})
	if err != nil {
		return nil, refusal(err, path, opts)
	}
	return bolt, nil
}

// checkFile looks at all pages of a file that is there. It reads as much as bbolt does
// when it opens one.
func checkFile(path string, opts Options, g *guard) error {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && info.Size() == 0 {
		return nil
	}
	if err != nil {
		return fmt.Errorf("look at log store: %w", err)
	}
	err = g.run("open", func() error {
		// Only to read, and locked against another process that writes.
		db, err := bbolt.Open(path, 0o600, &bbolt.Options{ReadOnly: true, Timeout: opts.LockTimeout})
		if err != nil {
			return err
		}
		return errors.Join(checkPages(path, db, g), db.Close())
	})
	if refused := (*fs.PathError)(nil); err == nil || errors.Is(err, ErrDamaged) || errors.Is(err, bolterrors.ErrTimeout) || errors.As(err, &refused) {
		return refusal(err, path, opts)
	}
	return g.damagef("%s: %v", fileName, err)
}

func checkPages(path string, db *bbolt.DB, g *guard) error {
	file, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("look at log store: %w", err)
	}
	defer file.Close()
	p := &pages{file: file, size: uint64(db.Info().PageSize)}
	err = db.View(func(tx *bbolt.Tx) error {
		p.high = uint64(tx.Size()) / p.size
		p.seen = make([]bool, p.high)
		if err := p.checkHeads(); err != nil {
			return err
		}
		if _, err := p.tree(uint64(tx.Cursor().Bucket().Root()), nil, nil, 0); err != nil {
			return err
		}
		return checkNames(tx)
	})
	if err != nil {
		return g.damagef("%s: %v", fileName, err)
	}
	return nil
}

// names are the buckets of the file and, of the one with names in it, those: a name that
// lost a bit would be a log or a vote that was forgotten.
var names = map[string][]string{
	"logs": nil,
	"conf": {string(keyTerm), string(keyVoteTerm), string(keyVoteCandidate), string(keyIncarnation)},
}

func checkNames(tx *bbolt.Tx) error {
	return tx.ForEach(func(name []byte, b *bbolt.Bucket) error {
		known, found := names[string(name)]
		if !found || b == nil {
			return fmt.Errorf("unknown bucket %q", name)
		}
		if known == nil {
			return nil
		}
		return b.ForEach(func(key, _ []byte) error {
			if !slices.Contains(known, string(key)) {
				return fmt.Errorf("unknown key %q", key)
			}
			return nil
		})
	})
}

// refusal says why a file was not opened.
func refusal(err error, path string, opts Options) error {
	switch {
	case err == nil || errors.Is(err, ErrDamaged):
		return err
	case errors.Is(err, bolterrors.ErrTimeout):
		return fmt.Errorf("%w: %s (stop that one, or give this one another with --data-dir)", ErrLocked, opts.Dir)
	}
	return fmt.Errorf("open log store %s: %w", path, err)
}
