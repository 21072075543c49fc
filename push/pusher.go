package push

import (
	"context"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/rollcall-io/rollcall/registry"
)

// Pusher keeps this node's UDP subscribers and sends them packets. Make one with New and
// run it with Run; all other methods are safe for concurrent use and never wait for the
// network, save those that ask other nodes.
type Pusher struct {
	opts    Options
	socket  socket
	metrics *metrics

	total, failed atomic.Uint64

	work   chan *topic
	wakeCh chan struct{} // holds one

	// mu guards all below. No other lock is taken under it.
	mu     sync.Mutex
	subs   map[subscriberKey]*subscriber
	byAddr map[addrKey][]*subscriber
	topics map[registry.ServiceKey]*topic
	named  strangers
	queue  dueQueue
}

// New opens the socket and registers the metrics. Whoever makes a Pusher must Run it or
// Close it.
func New(opts Options) (*Pusher, error) {
	if err := opts.validate(); err != nil {
		return nil, fmt.Errorf("push options: %w", err)
	}
	addr, err := net.ResolveUDPAddr("udp", opts.Addr)
	if err != nil {
		return nil, fmt.Errorf("push address %q: %w", opts.Addr, err)
	}
	conn, err := net.ListenUDP("udp", addr)
	if err != nil {
		return nil, fmt.Errorf("open push socket %q: %w", opts.Addr, err)
	}
	p := &Pusher{
		opts: opts, socket: newSocket(conn), work: make(chan *topic), wakeCh: make(chan struct{}, 1),
		subs: make(map[subscriberKey]*subscriber), byAddr: make(map[addrKey][]*subscriber),
		topics: make(map[registry.ServiceKey]*topic), named: newStrangers(),
	}
	p.metrics = newMetrics(opts.Metrics, p)
	return p, nil
}

// Close closes the socket of a Pusher that was never run.
func (p *Pusher) Close() error { return p.socket.conn.Close() }

// Addr is the address of the socket.
func (p *Pusher) Addr() net.Addr { return p.socket.conn.LocalAddr() }

// Run sends until ctx ends, then closes the socket and waits for its goroutines. Its
// error is that of ctx, or of a socket that broke.
func (p *Pusher) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		<-ctx.Done()
		_ = p.Close() // ends readAcks
		return ctx.Err()
	})
	group.Go(func() error { return p.readAcks(ctx) })
	group.Go(func() error { return p.runSchedule(ctx) })
	group.Go(func() error { return p.runSweep(ctx) })
	for range p.opts.Senders {
		group.Go(func() error { return p.runSender(ctx) })
	}
	return group.Wait()
}

// ServiceChanged takes a task of the change feed: the service's subscribers are due.
func (p *Pusher) ServiceChanged(task registry.ChangeTask) {
	p.mu.Lock()
	defer p.mu.Unlock()
	since := task.Since
	if since.IsZero() {
		since = time.Now()
	}
	if task.Kind != registry.TaskResync {
		p.mark(p.topics[task.Key], since)
		return
	}
	for _, t := range p.topics {
		p.mark(t, since)
	}
}

// mark notes that a service changed. It needs mu; t may be nil.
func (p *Pusher) mark(t *topic, since time.Time) {
	if t == nil {
		return
	}
	t.changes++
	if !t.dirty {
		t.dirty, t.since = true, since
	}
	if t.at == notQueued && !t.sending {
		p.enqueue(t, t.pace.due(time.Now()))
	}
}

// kick wakes the schedule.
func (p *Pusher) kick() {
	select {
	case p.wakeCh <- struct{}{}:
	default:
	}
}
