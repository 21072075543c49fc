package httprr

import (
	"io"
	"net/http"
	"sync"
)

// heldBody is a request's body that outlives an attempt that never read it: a transport
// closes the body when it cannot connect, and the next instance needs it.
type heldBody struct {
	io.ReadCloser

	mu     sync.Mutex
	read   bool // somebody has begun to
	asked  bool // to be closed
	letgo  bool // no further attempt comes
	closed bool
}

// hold is nil for a request without a body.
func hold(r *http.Request) *heldBody {
	if r.Body == nil || r.Body == http.NoBody {
		return nil
	}
	return &heldBody{ReadCloser: r.Body}
}

// Read reads the body.
func (b *heldBody) Read(p []byte) (int, error) {
	b.mu.Lock()
	b.read = true
	b.mu.Unlock()
	return b.ReadCloser.Read(p)
}

// Close closes a body that was read, or that no further attempt needs.
func (b *heldBody) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.asked = true
	return b.finish()
}

// letGo ends the attempts: whoever has the body now closes it, or has done so. One that
// failed is closed in any case.
func (b *heldBody) letGo(failed bool) {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.letgo, b.asked = true, b.asked || failed
	_ = b.finish() // told to nobody, as a transport does not either
}

// touched tells whether another attempt would send less than all.
func (b *heldBody) touched() bool {
	if b == nil {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.read
}

// finish closes the body when it is time to; the mutex is held.
func (b *heldBody) finish() error {
	if b.closed || !b.asked || !b.read && !b.letgo {
		return nil
	}
	b.closed = true
	return b.ReadCloser.Close()
}
