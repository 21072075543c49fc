package httpapi

import (
	"sync/atomic"

	"github.com/rollcall-io/rollcall/registry"
)

// freeBytes is how much of a body each request may hold without being counted: nearly all
// are shorter, and those are never refused.
const freeBytes = 32 << 10

// budget counts the memory that one kind of thing holds, the long bodies of all requests
// for example. It is safe for concurrent use.
type budget struct{ used atomic.Int64 }

// hold counts what a request holds of the bodies' memory until it ends, in place of what
// it held before. It is registry.ErrOverloaded when all requests hold too much.
func (r *request) hold(bytes int64) error {
	more := bytes - freeBytes - r.held
	if more <= 0 {
		return nil
	}
	if r.srv.bodies.used.Add(more) > r.srv.opts.MaxBodies {
		r.srv.bodies.used.Add(-more)
		return registry.ErrOverloaded.Because("too many long request bodies at a time")
	}
	r.held += more
	return nil
}

// letGo gives back what the request holds.
func (r *request) letGo() {
	if r.held > 0 {
		r.srv.bodies.used.Add(-r.held)
		r.held = 0
	}
}
