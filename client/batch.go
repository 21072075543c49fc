package client

import (
	"context"
	"errors"
	"sync"
	"time"
)

// batchWorkers bounds the requests of a batch that are on their way at once.
const batchWorkers = 16

// RegisterAll registers many, sixteen at a time, and waits for all. The error joins those
// of the ones that failed, each as Register gives it; the others are registered. It takes
// as long as servers need, but when none has answered for Options.Timeout, what is left
// is ErrPending at once.
func (c *Client) RegisterAll(ctx context.Context, rs []Registration) error {
	return errors.Join(c.registerEach(ctx, rs)...)
}

// registerEach is RegisterAll with the error of each.
func (c *Client) registerEach(ctx context.Context, rs []Registration) []error {
	return inParallel(ctx, c.opts.Timeout, rs, c.Register)
}

// DeregisterAll is RegisterAll's counterpart: each error is as Deregister gives it.
func (c *Client) DeregisterAll(ctx context.Context, keys []Key) error {
	return errors.Join(inParallel(ctx, c.opts.Timeout, keys, c.Deregister)...)
}

// inParallel calls f with each item. Once no server has answered for the patience, ctx
// ends for the items that are left, so that f only notes what it shall do.
func inParallel[T any](ctx context.Context, patience time.Duration, items []T, f func(context.Context, T) error) []error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	silence := time.AfterFunc(patience, cancel)
	defer silence.Stop()
	var wg sync.WaitGroup
	errs := make([]error, len(items))
	next := make(chan int)
	for range min(batchWorkers, len(items)) {
		wg.Go(func() {
			for i := range next {
				if errs[i] = f(ctx, items[i]); !errors.Is(errs[i], ErrPending) {
					silence.Reset(patience)
				}
			}
		})
	}
	for i := range items {
		next <- i
	}
	close(next)
	wg.Wait()
	return errs
}
