package fsm

import (
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/rollcall-io/rollcall/registry"
)

// DefaultFeedCapacity is how many services may wait in the change feed: what the
// original's notifier queue holds.
const DefaultFeedCapacity = 1 << 20

// Listener is told of changes, one task at a time, by the notifier's goroutine. It may
// read the FSM. A slow one makes tasks of a service merge; one that panics is counted
// and called again with the next task.
type Listener interface {
	ServiceChanged(task registry.ChangeTask)
}

// feed is the queue of changed services and its notifier. Apply puts in without ever
// waiting; a service that waits already is not put in twice.
type feed struct {
	source   *FSM
	capacity int
	wakeCh   chan struct{} // holds one
	stopCh   chan struct{}
	doneCh   chan struct{}
	stopOnce sync.Once

	// mu guards all below. No other lock is taken under it.
	mu        sync.Mutex
	waiting   map[registry.ServiceKey]*feedTask
	queue     []*feedTask // in the order of their first change
	resync    bool        // comes before the queue
	resyncAt  time.Time
	listeners []Listener
}

type feedTask struct {
	key      registry.ServiceKey
	revision uint64
	since    time.Time
}

func newFeed(capacity int, source *FSM) *feed {
	f := &feed{
		source: source, capacity: capacity, waiting: make(map[registry.ServiceKey]*feedTask),
		wakeCh: make(chan struct{}, 1), stopCh: make(chan struct{}), doneCh: make(chan struct{}),
	}
	go f.run()
	return f
}

func (f *feed) close() {
	f.stopOnce.Do(func() { close(f.stopCh) })
	<-f.doneCh
}

// Listen adds a listener; it is told of the changes that are handed out from now on.
func (f *FSM) Listen(l Listener) {
	f.feed.mu.Lock()
	defer f.feed.mu.Unlock()
	f.feed.listeners = append(f.feed.listeners[:len(f.feed.listeners):len(f.feed.listeners)], l)
}

// changed puts a service in. A full queue is emptied in favour of one resync.
func (f *feed) changed(key registry.ServiceKey, revision uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if t := f.waiting[key]; t != nil {
		t.revision = revision
		return
	}
	if len(f.waiting) >= f.capacity {
		f.source.metrics.feedDropped.Add(float64(len(f.waiting)) + 1)
		f.reset()
		return
	}
	t := &feedTask{key, revision, wallClock()}
	f.waiting[key] = t
	f.queue = append(f.queue, t)
}

// reset replaces everything that waits by one resync. Under mu.
func (f *feed) reset() {
	clear(f.waiting)
	f.queue = nil
	if !f.resync {
		f.resync, f.resyncAt = true, wallClock()
	}
}

// replaced is reset after all state was replaced.
func (f *feed) replaced() {
	f.mu.Lock()
	f.reset()
	f.mu.Unlock()
	f.kick()
}

// kick wakes the notifier.
func (f *feed) kick() {
	select {
	case f.wakeCh <- struct{}{}:
	default:
	}
}

// run is the notifier. It ends when the feed is closed.
func (f *feed) run() {
	defer close(f.doneCh)
	for {
		select {
		case <-f.stopCh:
			return
		case <-f.wakeCh:
		}
		for f.handOut() {
			select {
			case <-f.stopCh:
				return
			default:
			}
		}
	}
}

// handOut gives the next task to all listeners, false when there is none.
func (f *feed) handOut() bool {
	task, listeners, found := f.next()
	if !found {
		return false
	}
	if task.Kind == registry.TaskResync {
		task.Revision = f.source.Applied()
		f.source.metrics.feedResyncs.Inc()
	} else if svc := f.source.Service(task.Key); svc != nil {
		task.Kind, task.Revision = registry.TaskChange, svc.Revision
	}
	for _, l := range listeners {
		f.tell(l, task)
	}
	return true
}

// next takes the first task out. Whether a service changed or is gone is for the caller
// to see from its current value.
func (f *feed) next() (task registry.ChangeTask, listeners []Listener, found bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.resync {
		f.resync = false
		return registry.ChangeTask{Kind: registry.TaskResync, Since: f.resyncAt}, f.listeners, true
	}
	if len(f.queue) == 0 {
		return task, nil, false
	}
	t := f.queue[0]
	f.queue[0] = nil
	f.queue = f.queue[1:]
	delete(f.waiting, t.key)
	task = registry.ChangeTask{Kind: registry.TaskDelete, Key: t.key, Revision: t.revision, Since: t.since}
	return task, f.listeners, true
}

// tell calls a listener and survives its panic.
func (f *feed) tell(l Listener, task registry.ChangeTask) {
	defer func() {
		if p := recover(); p != nil {
			f.source.metrics.feedPanics.Inc()
			f.source.log.Error("listener of the change feed panicked",
				"service", task.Key.String(), "err", fmt.Sprint(p), "stack", string(debug.Stack()))
		}
	}()
	l.ServiceChanged(task)
}

// load is how many services wait and for how long the first of them has.
func (f *feed) load() (depth int, age time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.queue) > 0 {
		age = wallClock().Sub(f.queue[0].since)
	}
	return len(f.queue), age
}
