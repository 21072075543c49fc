package raftnode

import (
	"context"
	"sync"
)

// coalescer lets many callers share one answer. A caller shares only with a run that
// starts after it came: an answer found before may be too old for it.
type coalescer struct {
	run  func(ctx context.Context) (uint64, error)
	wake chan struct{}

	mu   sync.Mutex
	next *flight // those that wait for the next run; nil when nobody does
}

type flight struct {
	done  chan struct{}
	value uint64
	err   error
}

func newCoalescer(run func(ctx context.Context) (uint64, error)) *coalescer {
	return &coalescer{run: run, wake: make(chan struct{}, 1)}
}

// get waits for the answer of the next run, or the end of ctx.
func (c *coalescer) get(ctx context.Context) (uint64, error) {
	c.mu.Lock()
	if c.next == nil {
		c.next = &flight{done: make(chan struct{})}
		select {
		case c.wake <- struct{}{}:
		default:
		}
	}
	f := c.next
	c.mu.Unlock()
	select {
	case <-f.done:
		return f.value, f.err
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

// loop makes the runs, one at a time, until ctx ends. Then callers wait for their own
// contexts.
func (c *coalescer) loop(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.wake:
		}
		c.mu.Lock()
		f := c.next
		c.next = nil
		c.mu.Unlock()
		if f == nil {
			continue
		}
		f.value, f.err = c.run(ctx)
		close(f.done)
	}
}
