package client

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

const (
	// streamSilence is how long a stream may say nothing: servers send a comment each 15 s.
	streamSilence = 45 * time.Second
	// streamPause and streamLongest are between attempts to connect.
	streamPause   = 200 * time.Millisecond
	streamLongest = 15 * time.Second
	// streamLate is how long after a list a stream may tell of what the list shows.
	streamLate = time.Second
	// noWatchPause is until a server that has no watch is asked again.
	noWatchPause = 5 * time.Minute
	// maxEventHead is how much of an event is looked at: its index stands first.
	maxEventHead = 4 << 10
)

// errNoWatch: the server has no watch.
var errNoWatch = errors.New("the server has no watch")

// errBehind: another node knew of a change that the stream has not told of.
var errBehind = errors.New("the stream's node is behind")

// trust is whether the open stream tells of what lists show. A node that is cut off from
// the others streams nothing and does not know it.
type trust struct {
	told     uint64    // events before the list before was asked for
	doubtful time.Time // since when a list has shown what no event told; zero for no doubt
	stream   uint64    // the stream in doubt
}

// check looks at the list that was just asked for, and ends a stream that has not told
// within streamLate of what a list showed: the next one goes to another node. asked is
// when the list was asked for, told what streams had told of by then. It tells whether it
// wants to look again within streamLate.
func (t *trust) check(f *follower, asked time.Time, told uint64) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	open, silent := f.cutStream != nil, f.told.Load() == t.told
	t.told = told
	switch {
	case !open || !silent || t.stream != f.opened:
		t.doubtful = time.Time{}
	case !t.doubtful.IsZero() && asked.Sub(t.doubtful) >= streamLate:
		f.cutStream()
		t.doubtful = time.Time{}
	}
	if open && silent && t.doubtful.IsZero() && f.outcome == "changed" {
		t.doubtful = asked
	}
	t.stream = f.opened
	return !t.doubtful.IsZero()
}

// streams bounds the watch streams of a client and knows whether servers have them.
type streams struct {
	slots   chan struct{}
	absent  atomic.Bool  // the last server that was asked has no watch
	waiting atomic.Int32 // services that found no slot
}

func newStreams(limit int) *streams {
	s := &streams{slots: make(chan struct{}, max(limit, 0))}
	s.absent.Store(limit < 0)
	return s
}

// expected tells whether every service has a stream or will have one.
func (s *streams) expected() bool { return !s.absent.Load() && s.waiting.Load() == 0 }

// slot waits until the service may have a stream; false when ctx ended before.
func (f *follower) slot(s *streams) bool {
	select {
	case s.slots <- struct{}{}:
		return true
	default:
	}
	s.waiting.Add(1)
	defer s.waiting.Add(-1)
	f.kick() // the next list asks for pushes meanwhile
	select {
	case s.slots <- struct{}{}:
		return true
	case <-f.ctx.Done():
		return false
	}
}

// listen keeps a stream open while the service is followed.
func (f *follower) listen() {
	s := f.c.streams
	if cap(s.slots) == 0 {
		return
	}
	if !f.slot(s) {
		return
	}
	defer func() { <-s.slots }()
	select { // the first list says where to begin
	case <-f.tried:
	case <-f.ctx.Done():
	}
	for pause := streamPause; f.ctx.Err() == nil; {
		began := time.Now()
		err := f.stream(f.c.servers.order()[0])
		f.streaming.Store(false)
		f.kick() // what happened since is in the list
		switch {
		case errors.Is(err, errNoWatch):
			s.absent.Store(true)
			pause = noWatchPause
		case time.Since(began) > streamLongest:
			pause = streamPause
		default:
			pause = min(2*pause, streamLongest)
		}
		if !f.c.pause(f.ctx, pause) {
			return
		}
	}
}

// stream reads one stream until it ends.
func (f *follower) stream(at *server) error {
	ctx, cancel := context.WithCancelCause(f.ctx)
	defer func() {
		cancel(nil)
		f.mu.Lock()
		f.cutStream = nil
		f.mu.Unlock()
	}()
	silent := fmt.Errorf("watch at %s: silent", at.base)
	watchdog := time.AfterFunc(f.c.opts.AttemptTimeout, func() { cancel(silent) })
	defer watchdog.Stop()
	resp, err := f.openStream(ctx, at)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	f.c.streams.absent.Store(false)
	f.streaming.Store(true)
	f.mu.Lock()
	f.cutStream = func() { cancel(errBehind) }
	f.opened++
	f.mu.Unlock()
	f.kick() // from here on all is told; what came before is in the list
	lines := bufio.NewReaderSize(resp.Body, maxEventHead)
	for {
		watchdog.Reset(streamSilence)
		line, err := headOfLine(lines)
		if err != nil {
			return err
		}
		if data, is := strings.CutPrefix(line, "data:"); is {
			f.told.Add(1)
			f.hint(eventIndex(data), 0, "stream")
		}
	}
}

func (f *follower) openStream(ctx context.Context, at *server) (*http.Response, error) {
	q := url.Values{"namespace": {f.c.opts.Namespace}, "group": {f.key.name.Group}, "service": {f.key.name.Name}}
	if index := f.knownIndex(); index > 0 {
		q.Set("index", strconv.FormatUint(index, 10))
	}
	token, err := f.c.login.token(ctx, false)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at.base+"/api/v1/watch?"+q.Encode(), nil)
	if err != nil {
		return nil, err
	}
	f.c.headers(req, "", token)
	resp, err := f.c.http.Do(req)
	if err != nil {
		f.c.metrics.request("watch", "error")
		at.failed(time.Now())
		return nil, err
	}
	f.c.metrics.request("watch", strconv.Itoa(resp.StatusCode))
	if resp.StatusCode == http.StatusOK && strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		return resp, nil
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorText)) // only for the message
	switch resp.StatusCode {
	case http.StatusOK, http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusNotImplemented:
		return nil, errNoWatch
	case http.StatusForbidden, http.StatusUnauthorized:
		f.c.login.drop(ctx, token)
	}
	return nil, &ServerError{Op: "watch", Server: at.base, Status: resp.StatusCode, Text: errorText(body)}
}

// knownIndex is up to where the list in place has everything, 0 when no server of a
// replicated log has given it.
func (f *follower) knownIndex() uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.live.ordered {
		return 0
	}
	return f.live.index
}

// headOfLine reads a line and returns its beginning.
func headOfLine(r *bufio.Reader) (string, error) {
	head, more, err := r.ReadLine()
	text := string(head)
	for more && err == nil {
		_, more, err = r.ReadLine()
	}
	return text, err
}

// eventIndex is the index of an event, 0 when it does not say.
func eventIndex(data string) uint64 {
	d := json.NewDecoder(strings.NewReader(data))
	for {
		t, err := d.Token()
		if err != nil {
			return 0
		}
		if t == "index" {
			var index uint64
			if d.Decode(&index) != nil {
				return 0
			}
			return index
		}
	}
}
