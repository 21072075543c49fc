package httpapi

import "sync"

// maxRemembered bounds how many messages are known to have been logged; when it is
// reached all are forgotten, so that a flood of new ones costs memory for no longer.
const maxRemembered = 4096

// onceLog remembers what was logged. The zero value is ready; it is safe for
// concurrent use.
type onceLog struct {
	mu   sync.Mutex
	seen map[string]struct{}
}

// first tells whether key was not seen before.
func (o *onceLog) first(key string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, found := o.seen[key]; found {
		return false
	}
	if o.seen == nil || len(o.seen) >= maxRemembered {
		o.seen = make(map[string]struct{})
	}
	o.seen[key] = struct{}{}
	return true
}
