package httpapi

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/rollcall-io/rollcall/registry"
)

// Watcher opens watches. It does not wait. Errors: registry.ErrOverloaded when there are
// too many, registry.ErrShuttingDown.
type Watcher interface {
	Watch(registry.Watch) (WatchStream, error)
}

// WatchStream is one watch, for one goroutine.
type WatchStream interface {
	// Next waits for something to tell: until ctx ends, or registry.ErrShuttingDown.
	Next(ctx context.Context) (registry.WatchBatch, error)
	// Index is up to where everything has been told.
	Index() uint64
	// Sent notes that a batch has been handed to the network.
	Sent(registry.WatchBatch)
	// Close ends the watch.
	Close()
}

var watchRoutes = []route{
	{http.MethodGet, "/api/v1/watch", nativeScans, (*Server).watch},
}

const (
	// maxPollWait bounds a long poll.
	maxPollWait = 60 * time.Second
	// pollMargin is what a long poll's answer may take beyond its wait.
	pollMargin = 10 * time.Second
	// lastEventHeader is what a browser's EventSource sends when it comes back.
	lastEventHeader = "Last-Event-Id"
)

// watch is GET /api/v1/watch: what happens to a service, or to all whose names begin
// alike, as a stream of events or, with `wait`, as one answer when something happened.
func (s *Server) watch(r *request) error {
	q, err := r.watchQuery()
	if err != nil {
		return plain(err)
	}
	wait, polls, err := r.pollWait()
	if err != nil {
		return plain(err)
	}
	if s.opts.Watcher == nil {
		return plain(registry.ErrUnsupported.Because("this node has no watches"))
	}
	if err := s.reached(r, q); err != nil {
		return plain(err)
	}
	stream, err := s.opts.Watcher.Watch(q)
	if err != nil {
		return plain(err)
	}
	defer stream.Close()
	if polls {
		return s.pollWatch(r, stream, wait)
	}
	return s.streamWatch(r, stream)
}

// plain gives an error the words of the native API: without what Nacos puts around them.
func plain(err error) error {
	e, known := replyTo(err)
	if !known {
		return err
	}
	bare := *e
	bare.bare = true
	return &bare
}

// reached waits until this node is where the watcher was on another: what is told must
// never run backwards.
func (s *Server) reached(r *request, q registry.Watch) error {
	if !q.Resume || s.opts.Reader.Applied() >= q.After {
		return nil
	}
	ctx, cancel := context.WithTimeout(r.gin.Request.Context(), s.opts.ReadTimeout)
	defer cancel()
	if err := s.opts.Reader.WaitApplied(ctx, q.After); err != nil {
		return lateRead(err, "index "+strconv.FormatUint(q.After, 10)+" is not applied here, this node is at "+
			strconv.FormatUint(s.opts.Reader.Applied(), 10)+": ask another node, or start anew without index")
	}
	return nil
}

// watchQuery reads what is watched and from where on.
func (r *request) watchQuery() (q registry.Watch, err error) {
	q.Namespace = r.either("namespace", "namespaceId", registry.DefaultNamespace)
	q.Group = r.either("group", "groupName", registry.DefaultGroup)
	one, many := r.either("service", "serviceName", ""), r.optional("services", "")
	switch {
	case one == "" && many == "":
		return q, registry.Invalid("service", "", "a watch needs service=NAME or services=PREFIX*")
	case one != "" && many != "":
		return q, registry.Invalid("services", many, "cannot be given together with service")
	case many != "":
		prefix, found := strings.CutSuffix(many, "*")
		if !found || strings.Contains(prefix, "*") {
			return q, registry.Invalid("services", many, "must be a prefix with * at its end")
		}
		q.Name, q.Prefix = prefix, true
	default:
		key := registry.NewServiceKey(q.Namespace, q.Group, one)
		if q.Group == registry.AnyGroup {
			return q, registry.Invalid("group", q.Group, "one service is in one group; * goes with services")
		}
		if err := registry.ValidateServiceKey(key); err != nil {
			return q, err
		}
		q.Group, q.Name = key.Group(), key.Name()
	}
	q.After, q.Resume, err = r.watchIndex()
	return q, err
}

func (r *request) either(name, alias, fallback string) string {
	return r.optional(name, r.optional(alias, fallback))
}

// watchIndex is the index that the watcher has seen. The header wins: it is newer than
// the address with which a browser comes back. 0 is as none.
func (r *request) watchIndex() (index uint64, resume bool, err error) {
	text := r.optional("index", "")
	if v := r.gin.Request.Header[lastEventHeader]; len(v) > 0 && v[0] != "" {
		text = v[0]
	}
	if text == "" {
		return 0, false, nil
	}
	if index, err = strconv.ParseUint(text, 10, 63); err != nil {
		return 0, false, registry.Invalid("index", text, "must be an index")
	}
	return index, index > 0, nil
}

// pollWait reads `wait`: a duration such as 30s, or a number of seconds.
func (r *request) pollWait() (wait time.Duration, polls bool, err error) {
	text := r.optional("wait", "")
	if text == "" {
		return 0, false, nil
	}
	if wait, err = time.ParseDuration(text); err != nil {
		wait, err = time.ParseDuration(text + "s")
	}
	if err != nil || wait < 0 || wait > maxPollWait {
		return 0, false, registry.Invalid("wait", text, "must be a duration from 0s to "+maxPollWait.String())
	}
	return wait, true, nil
}

// pollWatch answers with what there is to tell, or with no events when the wait is over.
func (s *Server) pollWatch(r *request, stream WatchStream, wait time.Duration) error {
	rc := http.NewResponseController(r.gin.Writer)
	extend(rc, wait+pollMargin)
	ctx, cancel := context.WithTimeout(r.gin.Request.Context(), max(wait, time.Millisecond))
	defer cancel()
	batch, err := stream.Next(ctx)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		b := appendInt(append(r.buffer(), `{"index":`...), int64(stream.Index()))
		return r.json(append(b, `,"events":[]}`...))
	case err != nil:
		return plain(err)
	}
	extend(rc, pollMargin)
	r.index = batch.Index
	r.head(http.StatusOK, typeJSON)
	b := appendInt(append(r.buffer(), `{"index":`...), int64(batch.Index))
	b = append(b, `,"events":[`...)
	r.out = b
	_, _ = r.gin.Writer.Write(b)
	first := true
	err = eachObject(nil, batch, func(object []byte, _ bool) error {
		if !first {
			object = append([]byte{','}, object...)
		}
		first = false
		_, err := r.gin.Writer.Write(object)
		return err
	})
	if err != nil {
		return nil // a client that left
	}
	_, _ = r.gin.Writer.WriteString("]}")
	stream.Sent(batch)
	return nil
}

// extend gives an answer time of its own: those of ordinary ones are too short for it. A
// writer without deadlines, as in tests, has none to move.
func extend(rc *http.ResponseController, d time.Duration) {
	_ = rc.SetReadDeadline(time.Time{})
	_ = rc.SetWriteDeadline(time.Now().Add(d))
}
