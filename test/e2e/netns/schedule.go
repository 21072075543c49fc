//go:build linux

package netns

import (
	"container/heap"
	"sync"
	"time"
)

// packet is on its way to a node until its time has come.
type packet struct {
	at   time.Time
	to   int
	data []byte
}

// schedule hands out packets when they are due. Its methods are safe for concurrent use.
type schedule struct {
	wake  chan struct{}
	ended chan struct{}
	limit int

	mu      sync.Mutex
	waiting byTime
}

func newSchedule(limit int) *schedule {
	return &schedule{wake: make(chan struct{}, 1), ended: make(chan struct{}), limit: limit}
}

// add takes a packet, and tells whether there was room for it.
func (s *schedule) add(p packet) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.waiting) >= s.limit {
		return false
	}
	heap.Push(&s.waiting, p)
	if s.waiting[0].at.Equal(p.at) { // run waits for a later one
		select {
		case s.wake <- struct{}{}:
		default:
		}
	}
	return true
}

// run calls deliver for each packet when it is due, until close.
func (s *schedule) run(deliver func(packet)) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-s.ended:
			return
		case <-s.wake:
		case <-timer.C:
		}
		for p, found := s.next(); found; p, found = s.next() {
			deliver(p)
		}
		timer.Reset(s.pause())
	}
}

// next takes the first packet if it is due.
func (s *schedule) next() (packet, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.waiting) == 0 || time.Now().Before(s.waiting[0].at) {
		return packet{}, false
	}
	return heap.Pop(&s.waiting).(packet), true
}

// pause is the time until the first packet is due.
func (s *schedule) pause() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.waiting) == 0 {
		return time.Hour // add wakes
	}
	return time.Until(s.waiting[0].at)
}

// close ends run, which delivers nothing more. It is called once.
func (s *schedule) close() { close(s.ended) }

// byTime is a heap.
type byTime []packet

func (b byTime) Len() int           { return len(b) }
func (b byTime) Less(i, j int) bool { return b[i].at.Before(b[j].at) }
func (b byTime) Swap(i, j int)      { b[i], b[j] = b[j], b[i] }
func (b *byTime) Push(p any)        { *b = append(*b, p.(packet)) }
func (b *byTime) Pop() any {
	last := (*b)[len(*b)-1]
	*b = (*b)[:len(*b)-1]
	return last
}
