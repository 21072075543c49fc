package raftnode

import (
	"errors"
	"fmt"

	"github.com/rollcall-io/rollcall/raftnode/store"
)

// damagedError is an error about a damaged data directory that says what to do about it.
type damagedError struct {
	err    error
	advice string
}

func (e *damagedError) Error() string { return e.err.Error() + ": " + e.advice }
func (e *damagedError) Unwrap() error { return e.err }

// ExitCode is the exit code of a process that cannot start for it.
func (e *damagedError) ExitCode() int { return ExitDamage }

// advise adds to an error about damage what to do; others it leaves alone. Nothing is
// mended here: what was lost may be an entry that this node has acknowledged or a vote
// that it gave, and only a new incarnation has promised nothing.
func (n *Node) advise(err error) error {
	if !errors.Is(err, store.ErrDamaged) {
		return err
	}
	advice := "there is no other node to get it from: put back a copy of the directory, or empty it to begin anew"
	if n.opts.clustered() {
		advice = "while the other nodes are well, stop this one, empty its data directory and start it again: it joins anew and gets everything from them"
	}
	return &damagedError{err, advice}
}

// storeFailed ends the process: Raft would go on without what is damaged, or panic.
func (n *Node) storeFailed(err error) {
	if errors.Is(err, store.ErrDamaged) {
		n.fatal(ExitDamage, n.advise(err))
		return
	}
	n.fatal(ExitStore, fmt.Errorf("term or vote could not be written: %w", err))
}
