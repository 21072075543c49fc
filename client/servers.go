package client

import (
	"math/rand/v2"
	"sync/atomic"
	"time"
)

// downTime is how long a server that failed is asked only after the others.
const downTime = 5 * time.Second

// server is one node with its mark.
type server struct {
	base      string       // http://host:port
	downUntil atomic.Int64 // Unix nanoseconds
}

func (s *server) failed(now time.Time) { s.downUntil.Store(now.Add(downTime).UnixNano()) }
func (s *server) works()               { s.downUntil.Store(0) }

// isDown tells whether the others should be asked first. When the mark has run out, one
// caller finds out how the server is, and the mark stands on for everybody else: one that
// swallows requests must not hold up all workers at once.
func (s *server) isDown(now time.Time) bool {
	until := s.downUntil.Load()
	if until == 0 {
		return false
	}
	return until > now.UnixNano() || !s.downUntil.CompareAndSwap(until, now.Add(downTime).UnixNano())
}

// servers hands out the nodes in turn.
type servers struct {
	all  []*server
	turn atomic.Uint64
}

func newServers(addresses []string) (*servers, error) {
	s := &servers{}
	seen := map[string]bool{}
	for _, a := range addresses {
		base, err := baseURL(a)
		if err != nil {
			return nil, err
		}
		if !seen[base] {
			seen[base] = true
			s.all = append(s.all, &server{base: base})
		}
	}
	s.turn.Store(rand.Uint64N(uint64(len(s.all)))) // not every process starts at the first
	return s, nil
}

// order is every server once, in turn, those that failed lately last.
func (s *servers) order() []*server {
	n := uint64(len(s.all))
	start, now := s.turn.Add(1), time.Now()
	order, down := make([]*server, 0, n), []*server(nil)
	for i := range n {
		if at := s.all[(start+i)%n]; at.isDown(now) {
			down = append(down, at)
		} else {
			order = append(order, at)
		}
	}
	return append(order, down...)
}
