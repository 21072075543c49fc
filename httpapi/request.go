package httpapi

import (
	"context"
	"net"
	"net/http"
	"runtime/debug"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/rollcall-io/rollcall/registry"
)

// request is one request being answered. It is pooled: nothing may keep it, or its
// buffer, after the handler returned. Strings taken from it stay good.
type request struct {
	srv    *Server
	gin    *gin.Context
	start  time.Time
	params params
	v2     bool // a route of the open API
	// caller is the account that the request proved, where accounts are asked for.
	caller string
	// index is the index of the state that a read saw; 0 means the answer shows the
	// index applied when it is written.
	index uint64
	// held is what the request counts for in the bodies' memory.
	held int64
	// out is the memory for a body, the request's and then the answer's.
	out []byte
}

// maxPooled is the largest buffer that a pooled request keeps.
const maxPooled = 64 << 10

func (r *request) release() {
	r.params.reset()
	r.letGo()
	r.gin, r.index, r.caller = nil, 0, ""
	if cap(r.out) > maxPooled {
		r.out = nil
	}
	r.srv.pool.Put(r)
}

// propose commits a command within the deadline of a write.
func (r *request) propose(c registry.Command) (registry.Result, error) {
	ctx, cancel := context.WithTimeout(r.gin.Request.Context(), r.srv.opts.WriteTimeout)
	defer cancel()
	return r.srv.opts.Writer.Propose(ctx, c)
}

// commit is propose for a route that answers `ok`.
func (r *request) commit(c registry.Command) error {
	if _, err := r.propose(c); err != nil {
		return err
	}
	return r.ok()
}

// stack is the calling goroutine's stack, for the log of a panic.
func stack() string { return string(debug.Stack()) }

// localPort is the port at which the request came in, 0 when there was no socket.
func (r *request) localPort() int {
	if a, ok := r.gin.Request.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr); ok {
		return a.Port
	}
	return 0
}
