package mux

import (
	"maps"
	"sync"
	"time"
)

// sieve lets a line of the log through once in a period for each key. It keeps a
// bounded number of keys; while they are used up no further line passes.
type sieve struct {
	period time.Duration
	max    int

	mu   sync.Mutex
	last map[string]time.Time
}

func newSieve(period time.Duration, maxKeys int) *sieve {
	return &sieve{period: period, max: maxKeys, last: make(map[string]time.Time)}
}

// pass tells whether the line may be written now.
func (s *sieve) pass(key string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if t, known := s.last[key]; known && now.Sub(t) < s.period {
		return false
	}
	if len(s.last) >= s.max {
		maps.DeleteFunc(s.last, func(_ string, t time.Time) bool { return now.Sub(t) >= s.period })
	}
	if len(s.last) >= s.max {
		return false
	}
	s.last[key] = now
	return true
}
