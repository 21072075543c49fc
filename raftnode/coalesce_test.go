package raftnode

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"
)

// TestCoalescer_SharesOnlyWhatStartsLater: who comes while a run is under way must not
// get its answer.
func TestCoalescer_SharesOnlyWhatStartsLater(t *testing.T) {
	var runs atomic.Uint64
	started, finish := make(chan struct{}, 10), make(chan struct{})
	c := newCoalescer(func(context.Context) (uint64, error) {
		started <- struct{}{}
		<-finish
		return runs.Add(1), nil
	})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); c.loop(ctx) }()
	get := func() chan uint64 {
		got := make(chan uint64, 1)
		go func() { v, _ := c.get(context.Background()); got <- v }()
		return got
	}
	first := get()
	<-started
	second, third := get(), get()
	eventually(t, 10*time.Second, "two wait", func() error {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.next == nil {
			return errors.New("nobody waits")
		}
		return nil
	})
	finish <- struct{}{}
	if got := <-first; got != 1 {
		t.Errorf("first got run %d", got)
	}
	<-started
	finish <- struct{}{}
	// One of the two may have come a moment later and wait for a run of its own.
	for range 2 {
		select {
		case got := <-second:
			if got < 2 {
				t.Errorf("a later caller got run %d", got)
			}
		case got := <-third:
			if got < 2 {
				t.Errorf("a later caller got run %d", got)
			}
		case <-started:
			finish <- struct{}{}
		}
	}
	cancel()
	<-ended
	short, stop := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer stop()
	if _, err := c.get(short); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("after the end: %v", err)
	}
}
