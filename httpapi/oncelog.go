package httpapi

import (
	"sync"
	"time"
)

const (
	// maxRemembered bounds how many messages are known to have been logged; when it is
	// reached all are forgotten, so that a flood of new ones holds memory no longer.
	maxRemembered = 4096
	// maxPerSecond bounds how many new messages a second are logged.
	maxPerSecond = 10
)

// onceLog remembers what was logged. The zero value is ready; it is safe for
// concurrent use.
type onceLog struct {
	mu     sync.Mutex
	seen   map[string]struct{}
	second int64
	logged int // in that second
}

// first tells whether key is to be logged now: it was not seen before and the second's
// share is not used up. A key that comes too fast has another chance later.
func (o *onceLog) first(key string, now time.Time) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, found := o.seen[key]; found {
		return false
	}
	if second := now.Unix(); second != o.second {
		o.second, o.logged = second, 0
	}
	if o.logged == maxPerSecond {
		return false
	}
	o.logged++
	if o.seen == nil || len(o.seen) >= maxRemembered {
		o.seen = make(map[string]struct{})
	}
	o.seen[key] = struct{}{}
	return true
}
