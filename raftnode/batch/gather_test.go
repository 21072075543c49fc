package batch

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollcall-io/rollcall/internal/wire"
)

// callers come again as soon as they are answered, after a pause of their own each.
func callers(q *Queue, n int, pause func(i int) time.Duration, stop *atomic.Bool) {
	for i := range n {
		go func() {
			for !stop.Load() {
				g := put(q, Client, 1)
				<-g.done
				time.Sleep(pause(i))
			}
		}()
	}
}

// serve runs a queue for a second of the bubble's time, with callers, each batch taking so
// long, and returns the sizes of its batches.
func serve(t *testing.T, n int, took time.Duration, pause func(i int) time.Duration, gather bool) (sizes []int) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		q := NewQueue(Limits{Commands: 1000, Bytes: 10000, BatchCommands: 256, BatchBytes: 10000, Deepen: 64, Gather: gather}, 4)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			q.Run(ctx, func(items []*Item) func() {
				sizes = append(sizes, len(items))
				return func() {
					time.Sleep(took)
					q.Finish(items, func(int) wire.Outcome { return wire.Outcome{} })
				}
			})
		}()
		var stop atomic.Bool
		callers(q, n, pause, &stop)
		time.Sleep(time.Second)
		stop.Store(true)
		time.Sleep(time.Second)
		cancel()
		<-ended
	})
	return sizes
}

func mean(sizes []int) float64 {
	sum := 0
	for _, n := range sizes {
		sum += n
	}
	return float64(sum) / float64(len(sizes))
}

// Those whom a batch answers come again one after the other, within a millisecond.
func TestGather_WaitsForThoseWhoComeAgain(t *testing.T) {
	pause := func(i int) time.Duration { return time.Duration(100+15*i) * time.Microsecond }
	plain, gathered := mean(serve(t, 48, 3*time.Millisecond, pause, false)), mean(serve(t, 48, 3*time.Millisecond, pause, true))
	if gathered < 1.3*plain {
		t.Errorf("batches of %.1f commands with gathering, %.1f without", gathered, plain)
	}
}

func TestGather_FewCallersWaitForNothing(t *testing.T) {
	none := func(int) time.Duration { return 100 * time.Microsecond }
	for _, n := range []int{1, 4} {
		plain, gathered := serve(t, n, 3*time.Millisecond, none, false), serve(t, n, 3*time.Millisecond, none, true)
		if len(gathered) != len(plain) {
			t.Errorf("%d callers: %d batches in a second with gathering, %d without", n, len(gathered), len(plain))
		}
	}
}

// A command that comes a while after the last batch goes at once, however many were in it.
func TestGather_NotAfterAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := NewQueue(Limits{Commands: 1000, Bytes: 10000, BatchCommands: 256, BatchBytes: 10000, Deepen: 64, Gather: true}, 4)
		q.ended(ending{items: 50, took: 3 * time.Millisecond, at: time.Now()})
		time.Sleep(10 * time.Millisecond)
		put(q, Client, 1)
		began := time.Now()
		q.gather()
		if waited := time.Since(began); waited != 0 {
			t.Errorf("waited %v", waited)
		}
	})
}

// The wait ends when those who were answered are there, or enough for a batch to go beside
// others, and never lasts over its bound.
func TestGather_Bounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := NewQueue(Limits{Commands: 1000, Bytes: 10000, BatchCommands: 256, BatchBytes: 10000, Deepen: 64, Gather: true}, 4)
		put(q, Client, 1)
		wait := func(last int) time.Duration {
			q.last = ending{items: last, took: time.Minute, at: time.Now()}
			began := time.Now()
			q.gather()
			return time.Since(began)
		}
		if waited := wait(50); waited != gatherMax {
			t.Errorf("waited %v though nobody came, want %v", waited, gatherMax)
		}
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			for range 10 {
				time.Sleep(10 * time.Microsecond)
				put(q, Client, 1)
			}
		}()
		if waited := wait(10); waited != gatherMax/gatherLooks {
			t.Errorf("waited %v though all came at once", waited)
		}
		<-ended
		for range 60 {
			put(q, Client, 1)
		}
		if waited := wait(50); waited != 0 {
			t.Errorf("waited %v though enough waited", waited)
		}
	})
}
