package push

import (
	"container/heap"
	"context"
	"time"

	"github.com/rollcall-io/rollcall/registry"
)

// heldBack is how often a node that has not caught up looks whether it has.
const heldBack = 100 * time.Millisecond

// topic is a service that has subscribers. It is in the queue, or being sent, or clean.
type topic struct {
	key  registry.ServiceKey
	subs map[*subscriber]struct{}
	pace pace

	dirty   bool      // changed since it was last read for sending
	changes int       // so many times since something was sent
	since   time.Time // when the oldest change that was not sent was applied
	sending bool
	due     time.Time
	at      int // place in the queue
}

const notQueued = -1

// dueQueue is a min-heap of topics by the time at which they may be sent.
type dueQueue []*topic

func (q dueQueue) Len() int           { return len(q) }
func (q dueQueue) Less(i, j int) bool { return q[i].due.Before(q[j].due) }
func (q dueQueue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].at, q[j].at = i, j
}
func (q *dueQueue) Push(x any) {
	t := x.(*topic)
	t.at = len(*q)
	*q = append(*q, t)
}
func (q *dueQueue) Pop() any {
	last := (*q)[len(*q)-1]
	(*q)[len(*q)-1] = nil
	*q = (*q)[:len(*q)-1]
	last.at = notQueued
	return last
}

// enqueue needs mu.
func (p *Pusher) enqueue(t *topic, due time.Time) {
	t.due = due
	heap.Push(&p.queue, t)
	if t.at == 0 {
		p.kick()
	}
}

// next takes the first topic that is due out of the queue, or tells how long to wait. While
// the node has not caught up, all stay.
func (p *Pusher) next(current bool) (*topic, time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.queue) == 0 {
		return nil, time.Hour
	}
	if wait := time.Until(p.queue[0].due); wait > 0 {
		return nil, wait
	}
	if !current {
		return nil, heldBack
	}
	t := heap.Pop(&p.queue).(*topic)
	t.sending = true
	return t, 0
}

// runSchedule hands topics that are due to the senders.
func (p *Pusher) runSchedule(ctx context.Context) error {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		t, wait := p.next(p.opts.Current())
		if t != nil {
			select {
			case p.work <- t:
			case <-ctx.Done():
				return ctx.Err()
			}
			continue
		}
		timer.Reset(wait)
		select {
		case <-timer.C:
		case <-p.wakeCh:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (p *Pusher) runSender(ctx context.Context) error {
	for {
		select {
		case t := <-p.work:
			p.deliver(t)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// queueDepth is how many services wait to be sent.
func (p *Pusher) queueDepth() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.queue)
}
