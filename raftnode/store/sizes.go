package store

import "sync"

// maxMarks bounds the marks that are kept.
const maxMarks = 1024

// sizes knows the sizes of the newest entries roughly: it keeps a mark each time so many
// bytes were appended.
type sizes struct {
	step uint64

	mu    sync.Mutex
	marks []mark // ascending in bytes
	index uint64 // of the newest entry
	bytes uint64 // appended up to it
}

// mark says how many bytes were appended up to an index.
type mark struct{ index, bytes uint64 }

// note takes in that the log reaches up to an index, with so many bytes appended in all.
func (s *sizes) note(index, bytes uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.index, s.bytes = index, bytes
	if n := len(s.marks); n > 0 && bytes-s.marks[n-1].bytes < s.step {
		return
	}
	if len(s.marks) == maxMarks {
		s.marks = append(s.marks[:0], s.marks[maxMarks/2:]...)
	}
	s.marks = append(s.marks, mark{index, bytes})
}

// within is Store.Within.
func (s *sizes) within(bytes uint64) (entries uint64, bounded bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.bytes <= bytes {
		return 0, false
	}
	for _, m := range s.marks {
		if s.bytes-m.bytes <= bytes {
			// A conflict may have taken entries away again.
			return s.index - min(m.index, s.index), true
		}
	}
	return 0, true
}

// after is Store.After.
func (s *sizes) after(index uint64) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.marks {
		if m.index >= index {
			return s.bytes - m.bytes
		}
	}
	return 0
}
