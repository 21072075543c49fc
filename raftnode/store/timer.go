package store

import (
	"sync"
	"time"
)

// timer measures calls and knows which are running: a disk that hangs gives no error.
type timer struct {
	observe func(op string, took time.Duration, err error)

	mu      sync.Mutex
	next    uint64
	running map[uint64]time.Time // a handful at most
}

func newTimer(observe func(string, time.Duration, error)) *timer {
	if observe == nil {
		observe = func(string, time.Duration, error) {}
	}
	return &timer{observe: observe, running: make(map[uint64]time.Time)}
}

// start notes that a call begins; what it returns notes the end.
func (t *timer) start(op string) func(error) {
	began := time.Now()
	t.mu.Lock()
	t.next++
	call := t.next
	t.running[call] = began
	t.mu.Unlock()
	return func(err error) {
		t.mu.Lock()
		delete(t.running, call)
		t.mu.Unlock()
		t.observe(op, time.Since(began), err)
	}
}

// oldest is for how long the oldest running call has been running, 0 when none is.
func (t *timer) oldest() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	var longest time.Duration
	for _, began := range t.running {
		longest = max(longest, time.Since(began))
	}
	return longest
}
