package batch

import (
	"context"
	"sync"
	"time"
)

// Send starts the way of a batch and returns a function that waits for its end and
// calls Queue.Finish. Calls of Send do not overlap and come in the order of the queue;
// it must not block. The functions that it returns run side by side.
type Send func(items []*Item) (wait func())

// Run sends what comes into the queue until ctx ends, with as many batches on their way
// as the queue has senders, and returns when the last of them has ended. What waits in
// the queue then stays there; close the queue as well.
func (q *Queue) Run(ctx context.Context, send Send) {
	var (
		group sync.WaitGroup
		order = make(chan struct{}, 1) // holds one from taking a batch until it is sent
	)
	for range cap(q.wake) {
		group.Go(func() {
			for {
				select {
				case <-ctx.Done():
					return
				case <-q.wake:
				}
				for ctx.Err() == nil && q.step(order, send) {
				}
			}
		})
	}
	group.Wait()
}

// step sends one batch and waits for it; false when nothing waits.
func (q *Queue) step(order chan struct{}, send Send) bool {
	order <- struct{}{}
	if q.limits.Gather {
		q.gather()
	}
	began := time.Now()
	items := q.take(began)
	if len(items) == 0 {
		<-order
		return false
	}
	wait := send(items)
	<-order
	wait()
	end := time.Now()
	q.ended(ending{len(items), end.Sub(began), end})
	return true
}
