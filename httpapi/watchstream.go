package httpapi

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/rollcall-io/rollcall/registry"
)

// streamWriteTimeout bounds one write of a stream: who does not read for so long is cut
// off and comes back.
const streamWriteTimeout = 10 * time.Second

var (
	typeEvents = []string{"text/event-stream"}
	noStore    = []string{"no-store"}
	noBuffer   = []string{"no"}
)

// eventStream writes server-sent events.
type eventStream struct {
	w  io.Writer
	rc *http.ResponseController
	b  []byte
}

// streamWatch tells of everything as it happens, until the client leaves or the node
// stops. The answer then ends in order, and clients come back, to another node.
func (s *Server) streamWatch(r *request, stream WatchStream) error {
	h := r.gin.Writer.Header()
	h["Cache-Control"] = noStore
	h["X-Accel-Buffering"] = noBuffer // proxies of one kind hold back what they are not told to pass on
	r.head(http.StatusOK, typeEvents)
	out := &eventStream{w: r.gin.Writer, rc: http.NewResponseController(r.gin.Writer)}
	if out.comment("watching", 0) != nil {
		return nil
	}
	for {
		batch, err := next(r.gin.Request.Context(), stream, s.opts.Heartbeat)
		if s.authorize(r, nativeScans) != nil {
			return nil // the token has expired, or the permission was taken away meanwhile
		}
		switch {
		case err == nil:
			err = out.batch(batch)
			stream.Sent(batch)
		case errors.Is(err, context.DeadlineExceeded) && r.gin.Request.Context().Err() == nil:
			err = out.comment("heartbeat", stream.Index())
		}
		if err != nil {
			return nil
		}
	}
}

func next(ctx context.Context, stream WatchStream, wait time.Duration) (registry.WatchBatch, error) {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	return stream.Next(ctx)
}

// batch writes a batch, one event for each object. Only the last has an id: who loses the
// connection in between asks for the whole batch again.
func (e *eventStream) batch(batch registry.WatchBatch) error {
	err := eachObject(nil, batch, func(object []byte, last bool) error {
		if last {
			e.b = strconv.AppendUint(append(e.b, "id: "...), batch.Index, 10)
			e.b = append(e.b, '\n')
		}
		e.b = append(append(e.b, "data: "...), object...)
		e.b = append(e.b, "\n\n"...)
		if len(e.b) < 32<<10 {
			return nil
		}
		return e.flush()
	})
	if err != nil {
		return err
	}
	return e.flush()
}

// comment writes a line that clients pass over, and with an index the id up to which
// everything has been told.
func (e *eventStream) comment(text string, index uint64) error {
	e.b = append(append(append(e.b, ": "...), text...), '\n')
	if index > 0 {
		e.b = strconv.AppendUint(append(e.b, "id: "...), index, 10)
		e.b = append(e.b, '\n')
	}
	e.b = append(e.b, '\n')
	return e.flush()
}

func (e *eventStream) flush() error {
	extend(e.rc, streamWriteTimeout)
	_, err := e.w.Write(e.b)
	e.b = e.b[:0]
	if err != nil {
		return err
	}
	if err := e.rc.Flush(); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	return nil
}
