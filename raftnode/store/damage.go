package store

import (
	"errors"
	"fmt"
	"runtime/debug"
	"sync/atomic"

	"github.com/hashicorp/go-hclog"
)

// ErrDamaged says that what is on disk is not what was written. The message of an error
// that matches it names the directory and what is damaged.
var ErrDamaged = errors.New("data directory is damaged")

type damage struct{ dir, what string }

func (d *damage) Error() string { return "data directory " + d.dir + " is damaged: " + d.what }

func (d *damage) Is(target error) bool { return target == ErrDamaged }

// guard turns what bbolt does about damaged pages, which is to panic, into errors, and
// ends the process on them once Raft runs: Raft would go on without the entry, or panic
// itself.
type guard struct {
	dir   string
	fatal func(error)
	log   hclog.Logger
	armed atomic.Bool
}

func (g *guard) damagef(format string, args ...any) error {
	return &damage{g.dir, fmt.Sprintf(format, args...)}
}

// run makes a call of bbolt. A fault of memory, which a file that was cut off or cannot be
// read is to who maps it, is a panic of the goroutine here and not the end of the process.
func (g *guard) run(what string, op func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			g.log.Debug("store panicked", "call", what, "stack", string(debug.Stack()))
			err = g.damagef("%s raft.db: %s", what, reason(r))
		}
		if g.armed.Load() && errors.Is(err, ErrDamaged) && g.fatal != nil {
			g.fatal(err)
		}
	}()
	return op()
}

// reason says what a panic was about.
func reason(r any) string {
	if _, fault := r.(interface{ Addr() uintptr }); fault {
		return "a page cannot be read, the file was cut off or its disk is failing"
	}
	return fmt.Sprint(r)
}
