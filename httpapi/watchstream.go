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

const (
	// streamChunk is about how much is gathered before it is written.
	streamChunk = 32 << 10
	// streamKeep is how much memory a stream keeps between two events, and may hold without
	// being counted.
	streamKeep = 8 << 10
	// rendersAtOnce is how many streams build their texts at a time. When thousands wake for
	// one event the rest waits its turn: queued for the processors, they would keep Raft's
	// heartbeats from being sent.
	rendersAtOnce = 4
)

// errStreamMemory ends a stream whose client is to come back, when all together hold too much.
var errStreamMemory = errors.New("streams hold too much memory")

// eventStream writes server-sent events. Its texts are built in turn with other streams'
// and written beside them: a client that does not read holds up nobody.
type eventStream struct {
	w      io.Writer
	rc     *http.ResponseController
	b      []byte
	turns  chan struct{}
	memory *budget
}

// streamWatch tells of everything as it happens, until the client leaves or the node
// stops. The answer then ends in order, and clients come back, to another node.
func (s *Server) streamWatch(r *request, stream WatchStream) error {
	h := r.gin.Writer.Header()
	h["Cache-Control"] = noStore
	h["X-Accel-Buffering"] = noBuffer // proxies of one kind hold back what they are not told to pass on
	r.head(http.StatusOK, typeEvents)
	out := &eventStream{w: r.gin.Writer, rc: http.NewResponseController(r.gin.Writer), turns: s.renders,
		memory: &s.streams}
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
	e.turns <- struct{}{}
	defer func() { <-e.turns }()
	err := eachObject(nil, batch, func(object []byte, last bool) error {
		if last {
			e.b = strconv.AppendUint(append(e.b, "id: "...), batch.Index, 10)
			e.b = append(e.b, '\n')
		}
		e.b = append(append(e.b, "data: "...), object...)
		e.b = append(e.b, "\n\n"...)
		if len(e.b) < streamChunk {
			return nil
		}
		return e.send(len(object))
	})
	if err != nil || len(e.b) == 0 {
		return err
	}
	return e.send(0)
}

// send is flush for who has the turn: others have it meanwhile. What is held while the
// client takes the bytes counts, with the object that they were made of.
func (e *eventStream) send(object int) error {
	held := int64(cap(e.b) + object)
	if held > streamKeep {
		if !e.memory.take(held) {
			return errStreamMemory
		}
		defer e.memory.give(held)
	}
	<-e.turns
	defer func() { e.turns <- struct{}{} }()
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
	if e.b = e.b[:0]; cap(e.b) > streamKeep {
		e.b = nil
	}
	if err != nil {
		return err
	}
	if err := e.rc.Flush(); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	return nil
}
