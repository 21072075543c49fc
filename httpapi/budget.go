package httpapi

import (
	"sync"
	"sync/atomic"

	"github.com/rollcall-io/rollcall/registry"
)

// freeBytes is how much of a body or an answer each request may hold without being counted:
// nearly all are shorter, and those are never refused.
const freeBytes = 32 << 10

// budget counts the memory that one kind of thing holds, the long bodies of all requests
// for example. It is safe for concurrent use.
type budget struct {
	used  atomic.Int64
	limit int64
}

// take counts bytes until give; false, and nothing is counted, when that is over the limit.
func (b *budget) take(bytes int64) bool {
	if b.used.Add(bytes) > b.limit {
		b.used.Add(-bytes)
		return false
	}
	return true
}

func (b *budget) give(bytes int64) { b.used.Add(-bytes) }

// hold counts what a request holds of the bodies' memory until it ends, in place of what
// it held before. It is registry.ErrOverloaded when all requests hold too much.
func (r *request) hold(bytes int64) error {
	more := bytes - freeBytes - r.held
	if more <= 0 {
		return nil
	}
	if !r.srv.bodies.take(more) {
		return registry.ErrOverloaded.Because("too many long request bodies at a time")
	}
	r.held += more
	return nil
}

// letGo gives back what the request holds.
func (r *request) letGo() {
	if r.held > 0 {
		r.srv.bodies.give(r.held)
		r.held = 0
	}
}

// errAnswers refuses a long answer while clients that read slowly, or not at all, make
// others hold too much.
var errAnswers = registry.ErrOverloaded.Because("too many long answers at a time")

// sending runs send, which writes an answer of its own memory, and counts a long one until
// the client has taken it. It is errAnswers, and send is not run, when all together hold
// too much.
func (r *request) sending(bytes int, send func()) error {
	if bytes > freeBytes {
		if !r.srv.answers.take(int64(bytes)) {
			return errAnswers
		}
		defer r.srv.answers.give(int64(bytes))
	}
	send()
	return nil
}

// sharedBody is an answer that many requests send. However many they are it is counted
// once, also when the cache that it came from has let it go. The bytes must not be changed.
type sharedBody struct {
	bytes  []byte
	length []string // of Content-Length

	mu      sync.Mutex
	senders int
}

// sending is request.sending for a body that is shared.
func (b *sharedBody) sending(answers *budget, send func()) error {
	if len(b.bytes) > freeBytes {
		if !b.begin(answers) {
			return errAnswers
		}
		defer b.end(answers)
	}
	send()
	return nil
}

func (b *sharedBody) begin(answers *budget) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.senders == 0 && !answers.take(int64(len(b.bytes))) {
		return false
	}
	b.senders++
	return true
}

func (b *sharedBody) end(answers *budget) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.senders--; b.senders == 0 {
		answers.give(int64(len(b.bytes)))
	}
}
