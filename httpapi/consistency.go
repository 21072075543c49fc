package httpapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"github.com/rollcall-io/rollcall/registry"
)

// Parameters of every read, each also a header.
const (
	consistencyParam  = "consistency"
	minIndexParam     = "minIndex"
	consistencyHeader = "X-Rollcall-Consistency"
	minIndexHeader    = "X-Rollcall-Min-Index"

	linearizable = "linearizable"
)

// consistent makes a read wait for the state that it asks for: `minIndex=N` for an
// index, `consistency=linearizable` for everything that was answered before the read
// began. Reads that ask for nothing are answered from this node's memory as it is.
func (s *Server) consistent(r *request) error {
	level, min := r.option(consistencyParam, consistencyHeader), r.option(minIndexParam, minIndexHeader)
	if level != "" || min != "" {
		if err := s.await(r, level, min); err != nil {
			return err
		}
	}
	// Read before the state is, so that the answer holds at least this index.
	r.index = s.opts.Reader.Applied()
	return nil
}

func (s *Server) await(r *request, level, min string) error {
	var index uint64
	if min != "" {
		n, err := strconv.ParseUint(min, 10, 64)
		if err != nil {
			return registry.Invalid(minIndexParam, min, "must be an index")
		}
		index = n
	}
	ctx, cancel := context.WithTimeout(r.gin.Request.Context(), s.opts.ReadTimeout)
	defer cancel()
	switch level {
	case "", "local":
	case linearizable:
		n, err := s.opts.Cluster.ReadIndex(ctx)
		if err != nil {
			return lateRead(err, "no read index from the leader")
		}
		index = max(index, n)
	default:
		return registry.Invalid(consistencyParam, level, "must be linearizable or local")
	}
	if err := s.opts.Reader.WaitApplied(ctx, index); err != nil {
		return lateRead(err, fmt.Sprintf("index %d is not applied here, this node is at %d", index, s.opts.Reader.Applied()))
	}
	return nil
}

// catchUp waits until this node has applied what was acknowledged anywhere before now. A
// route that refuses for what this node does not know asks for it first: another node may
// have made it a moment ago.
func (s *Server) catchUp(r *request) error { return s.await(r, linearizable, "") }

// lateRead is 504 for a read whose deadline passed; nobody gets it who did not ask to wait.
func lateRead(err error, text string) error {
	if errors.Is(err, registry.ErrTimeout) || errors.Is(err, context.DeadlineExceeded) {
		return &reply{status: http.StatusGatewayTimeout, text: text}
	}
	return err
}

// option is a parameter or, when it is not there, a header.
func (r *request) option(param, header string) string {
	if v, _ := r.params.get(param); v != "" {
		return v
	}
	if v := r.gin.Request.Header[header]; len(v) > 0 {
		return v[0]
	}
	return ""
}
