package httpapi

import (
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// Header values that never change, shared by all answers: nobody may append to them.
var (
	typeJSON    = []string{"application/json"}
	typePlain   = []string{"text/plain;charset=UTF-8"}
	typeHTML    = []string{"text/html;charset=UTF-8"}
	noSniff     = []string{"nosniff"}
	retryAfter  = []string{"1"}
	closeHeader = []string{"close"}
)

// answerHeaders remembers the last header values that were formatted: an index, a lag or
// a leader is mostly the same for many answers in a row.
type answerHeaders struct {
	node   []string
	index  lastNumber
	lag    lastNumber
	leader atomic.Pointer[[]string]
}

type lastNumber struct{ last atomic.Pointer[formatted] }

type formatted struct {
	n     uint64
	value []string
}

func (l *lastNumber) header(n uint64) []string {
	if f := l.last.Load(); f != nil && f.n == n {
		return f.value
	}
	f := &formatted{n, []string{strconv.FormatUint(n, 10)}}
	l.last.Store(f)
	return f.value
}

func (a *answerHeaders) leaderHeader(id string) []string {
	if v := a.leader.Load(); v != nil && (*v)[0] == id {
		return *v
	}
	v := []string{id}
	a.leader.Store(&v)
	return v
}

// write sends an answer with the headers that every answer has. A body of 2 KiB or more
// needs its length said, or net/http sends it in chunks. It is errAnswers, and nothing is
// sent, when long answers hold too much memory already.
func (r *request) write(status int, contentType []string, body []byte) error {
	if len(body) < 2048 {
		r.send(status, contentType, nil, body)
		return nil
	}
	return r.sending(len(body), func() { r.send(status, contentType, []string{strconv.Itoa(len(body))}, body) })
}

// send writes an answer whose length is said unless it is nil.
func (r *request) send(status int, contentType, length []string, body []byte) {
	if length != nil {
		r.gin.Writer.Header()["Content-Length"] = length
	}
	r.head(status, contentType)
	// A failed write is a client that left; net/http closes the connection.
	_, _ = r.gin.Writer.Write(body)
}

func (r *request) head(status int, contentType []string) {
	a, cluster := &r.srv.headers, r.srv.opts.Cluster
	h := r.gin.Writer.Header()
	h["Content-Type"] = contentType
	h["X-Content-Type-Options"] = noSniff
	index := r.index
	if index == 0 {
		index = r.srv.opts.Reader.Applied()
	}
	h["X-Rollcall-Index"] = a.index.header(index)
	h["X-Rollcall-Node"] = a.node
	if id, _, _ := cluster.Leader(); id != "" {
		h["X-Rollcall-Leader"] = a.leaderHeader(id)
	}
	h["X-Rollcall-Lag-Ms"] = a.lag.header(uint64(max(0, cluster.LagMs())))
	r.gin.Writer.WriteHeader(status)
}

// ok answers the two bytes that clients compare.
func (r *request) ok() error { return r.text(http.StatusOK, "ok") }

// text answers a bare string with the content type that the client's Accept asks for.
func (r *request) text(status int, text string) error {
	contentType := r.textType()
	if &contentType[0] == &typeHTML[0] {
		text = htmlSafe.Replace(text)
	}
	r.head(status, contentType)
	_, _ = r.gin.Writer.WriteString(text)
	return nil
}

// json answers 200 with a body built in the buffer of buffer.
func (r *request) json(body []byte) error {
	r.out = body
	return r.write(http.StatusOK, typeJSON, body)
}

// buffer is the request's own memory, empty, for building a body.
func (r *request) buffer() []byte { return r.out[:0] }

// fail answers an error by the error table.
func (r *request) fail(err error) {
	e, known := replyTo(err)
	if !known {
		r.srv.log.Error("request failed", "method", r.gin.Request.Method, "path", r.gin.Request.URL.Path, "err", err)
	}
	if e.retry {
		r.gin.Writer.Header()["Retry-After"] = retryAfter
	}
	if e.closing {
		r.gin.Writer.Header()["Connection"] = closeHeader
	}
	if r.v2 && !e.plain {
		r.failV2(e)
		return
	}
	text := e.text
	if !e.bare {
		text = "caused: " + text + ";"
	}
	_ = r.text(e.status, text)
}

// htmlSafe escapes what could start markup and leaves quotes as Nacos prints them.
var htmlSafe = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

// textType is the content type of a bare string: the first of the best liked types of
// Accept that is one of ours, as Spring's negotiation has it.
func (r *request) textType() []string {
	accept := r.gin.Request.Header["Accept"]
	if len(accept) == 0 || accept[0] == "*/*" {
		return typePlain
	}
	best, bestQ := typePlain, 0.0
	for _, part := range strings.Split(accept[0], ",") {
		name, q := mediaRange(part)
		if q <= bestQ {
			continue
		}
		switch name {
		case "text/html":
			best, bestQ = typeHTML, q
		case "application/json":
			best, bestQ = typeJSON, q
		case "text/plain", "text/*", "*/*":
			best, bestQ = typePlain, q
		}
	}
	return best
}

// mediaRange splits `text/html;q=0.8`. A quality that is no number is 0.
func mediaRange(part string) (name string, q float64) {
	name, rest, found := strings.Cut(strings.TrimSpace(part), ";")
	q = 1
	for found {
		var parameter string
		parameter, rest, found = strings.Cut(rest, ";")
		if key, value, _ := strings.Cut(strings.TrimSpace(parameter), "="); strings.EqualFold(key, "q") {
			q, _ = strconv.ParseFloat(value, 64)
		}
	}
	return strings.ToLower(strings.TrimSpace(name)), q
}

// timestamp is an instant as the error pages of Nacos print it.
func timestamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000+00:00") }
