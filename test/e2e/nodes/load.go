package nodes

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"
)

// background runs functions until stop is called, which waits for them.
type background struct {
	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup
}

// newBackground is stopped at the end of the test at the latest.
func newBackground(t testing.TB) *background {
	b := &background{}
	b.ctx, b.cancel = context.WithCancel(context.Background())
	t.Cleanup(b.stop)
	return b
}

func (b *background) every(d time.Duration, f func(ctx context.Context)) {
	b.wg.Go(func() {
		for b.ctx.Err() == nil {
			f(b.ctx)
			select {
			case <-b.ctx.Done():
			case <-time.After(d):
			}
		}
	})
}

func (b *background) stop() { b.cancel(); b.wg.Wait() }

// KeepBeating beats each instance at its interval, or every second, as a client does: to
// the next node when one does not take the beat. stop ends it and waits.
func (c *Cluster) KeepBeating(instances ...Instance) (stop func()) {
	b := newBackground(c.t)
	for i, in := range instances {
		next, every := i, time.Second
		if in.Interval > 0 {
			every = in.Interval
		}
		b.every(every, func(ctx context.Context) {
			for range c.nodes {
				if c.nodes[next%len(c.nodes)].Beat(ctx, in) {
					return
				}
				next++
			}
		})
	}
	return b.stop
}

// Watch looks at a service on every node that answers and notes each sight of it with
// other than want healthy instances, from when all running nodes list them. stop ends it
// and returns the notes.
func (c *Cluster) Watch(service string, want int) (stop func() []string) {
	c.t.Helper()
	for _, n := range c.nodes {
		c.Until("instances of "+service+" on "+n.ID, func() bool { return !n.Running() || len(n.Keys(service)) == want })
	}
	b := newBackground(c.t)
	var mu sync.Mutex
	var notes []string
	for _, n := range c.nodes {
		b.every(100*time.Millisecond, func(context.Context) {
			hosts, err := n.List(service)
			if err != nil {
				return // down, stopped or not ready
			}
			healthy := 0
			for _, h := range hosts {
				if h.Healthy {
					healthy++
				}
			}
			if healthy != want || len(hosts) != want {
				mu.Lock()
				notes = append(notes, fmt.Sprintf("%s lists %d, %d healthy, of %d that beat", n.ID, len(hosts), healthy, want))
				mu.Unlock()
			}
		})
	}
	return func() []string { b.stop(); return notes }
}

// Ack is an acknowledged registration.
type Ack struct {
	Service, Key string
	Sent, Done   time.Time
}

// Writers are clients that register new instances, each in a service of its own, one
// after another.
type Writers struct {
	b    *background
	mu   sync.Mutex
	acks []Ack
	sent int
}

// Write starts clients that send through the nodes that via names each time they ask,
// and to the next of them when one fails.
func (c *Cluster) Write(clients int, pause time.Duration, via func() []*Node) *Writers {
	return c.WriteTo("writer", clients, pause, via)
}

// WriteTo is Write to services that begin with a name.
func (c *Cluster) WriteTo(name string, clients int, pause time.Duration, via func() []*Node) *Writers {
	w := &Writers{b: newBackground(c.t)}
	for k := range clients {
		i := 0
		service := fmt.Sprintf("%s-%d", name, k)
		w.b.every(pause, func(ctx context.Context) {
			i++
			in := Instance{Service: service, IP: fmt.Sprintf("10.%d.%d.%d", k, i/250, i%250), Port: 80}.Lasting()
			w.one(ctx, in, via(), k+i)
		})
	}
	return w
}

func (w *Writers) one(ctx context.Context, in Instance, nodes []*Node, first int) {
	w.mu.Lock()
	w.sent++
	w.mu.Unlock()
	for j := range nodes {
		sent := time.Now()
		limited, cancel := context.WithTimeout(ctx, requestTimeout)
		a, err := nodes[(first+j)%len(nodes)].Send(limited, http.MethodPost, NS+"/instance", in.Registration())
		cancel()
		if err == nil && a.OK() {
			w.mu.Lock()
			w.acks = append(w.acks, Ack{in.Service, in.Key(), sent, time.Now()})
			w.mu.Unlock()
			return
		}
	}
}

// SentAfter is the time of the first answer to a write that was sent after t; zero when
// there is none yet.
func (w *Writers) SentAfter(t time.Time) time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	var first time.Time
	for i := len(w.acks) - 1; i >= 0 && w.acks[i].Done.After(t); i-- {
		if a := w.acks[i]; a.Sent.After(t) && (first.IsZero() || a.Done.Before(first)) {
			first = a.Done
		}
	}
	return first
}

// LongestGap is the longest time without an acknowledgement so far.
func (w *Writers) LongestGap() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	var longest time.Duration
	for i := 1; i < len(w.acks); i++ {
		longest = max(longest, w.acks[i].Done.Sub(w.acks[i-1].Done))
	}
	return longest
}

// Sent is the number of registrations that were tried so far.
func (w *Writers) Sent() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.sent
}

// Stop ends the writers and returns what was acknowledged, keys by service.
func (w *Writers) Stop() map[string][]string {
	w.b.stop()
	acked := map[string][]string{}
	for _, a := range w.acks {
		acked[a.Service] = append(acked[a.Service], a.Key)
	}
	return acked
}
