package client

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
)

// followKey is what is followed: one list of the server.
type followKey struct {
	name     ServiceName
	clusters string // sorted, with commas; empty for all
}

// followers are the services that are followed. Those of all clusters can be looked up
// without a lock.
type followers struct {
	mu     sync.Mutex
	all    map[followKey]*follower
	lookup atomic.Pointer[map[ServiceName]*follower]
	ended  bool
}

func newFollowers() *followers {
	f := &followers{all: map[followKey]*follower{}}
	f.lookup.Store(&map[ServiceName]*follower{})
	return f
}

// Cached is what the client knows of a service that is followed, without a handle: false
// when nobody follows it with all its clusters, or nothing is known yet. It blocks on
// nothing and allocates nothing.
func (c *Client) Cached(name ServiceName) (*Snapshot, bool) {
	name, err := name.normal()
	f := (*c.followers.lookup.Load())[name]
	if f == nil || err != nil {
		return nil, false
	}
	s := f.current.Load()
	return s, s.source != FromNowhere
}

// Followed are the services that are followed, sorted, each once whatever the clusters. It
// does not block.
func (c *Client) Followed() []ServiceName {
	c.followers.mu.Lock()
	defer c.followers.mu.Unlock()
	names := make([]ServiceName, 0, len(c.followers.all))
	for k := range c.followers.all {
		names = append(names, k.name)
	}
	slices.SortFunc(names, func(a, b ServiceName) int { return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Name, b.Name)) })
	return slices.Compact(names)
}

// join finds or starts a follower and counts one more who uses it.
func (fs *followers) join(c *Client, key followKey) (*follower, error) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if fs.ended || c.closing.Load() {
		return nil, ErrClosed
	}
	f := fs.all[key]
	if f == nil {
		f = newFollower(c, key)
		fs.all[key] = f
		fs.publish()
		c.metrics.followed.Inc()
		c.spawn(f.run)
		c.spawn(f.listen)
	}
	f.users++
	return f, nil
}

// leave counts one user less, and ends the follower with the last.
func (f *follower) leave() {
	fs := f.c.followers
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if f.users--; f.users > 0 || fs.all[f.key] != f {
		return
	}
	delete(fs.all, f.key)
	fs.publish()
	f.c.metrics.followed.Dec()
	f.cancel()
}

// publish makes the map that is read without the lock anew; the mutex is held.
func (fs *followers) publish() {
	m := map[ServiceName]*follower{}
	for k, f := range fs.all {
		if k.clusters == "" {
			m[k.name] = f
		}
	}
	fs.lookup.Store(&m)
}

// end lets nobody join any more.
func (fs *followers) end() {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	fs.ended = true
}

// named are the followers of a service, whatever their clusters; of all services for the
// empty name.
func (fs *followers) named(name ServiceName) []*follower {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	var found []*follower
	for k, f := range maps.All(fs.all) {
		if k.name == name || name == (ServiceName{}) {
			found = append(found, f)
		}
	}
	return found
}

// subscription is one listener of a follower.
type subscription struct {
	signal chan struct{} // something may have changed
}

// subscribe starts the listener's goroutine, which ends with ctx, that of a handle.
func (f *follower) subscribe(ctx context.Context, call func(Event)) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	sub := &subscription{signal: make(chan struct{}, 1)}
	sub.signal <- struct{}{} // what is there already
	f.mu.Lock()
	f.subs[sub] = true
	f.mu.Unlock()
	if !f.c.followers.spawn(f.c, func() { f.tell(ctx, sub, call) }) {
		cancel()
		f.unsubscribe(sub)
	}
	return cancel
}

func (f *follower) unsubscribe(sub *subscription) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.subs, sub)
}

// spawn starts a goroutine that Close waits for; false when Close has begun to wait.
func (fs *followers) spawn(c *Client, f func()) bool {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if !fs.ended {
		c.spawn(f)
	}
	return !fs.ended
}

// tell calls the listener with what changed since its last call, until ctx ends.
func (f *follower) tell(ctx context.Context, sub *subscription, call func(Event)) {
	defer f.unsubscribe(sub)
	told := newSnapshot(f.key.name, nil, nil)
	for {
		select {
		case <-ctx.Done():
			return
		case <-sub.signal:
		}
		now := f.current.Load()
		first := told.source == FromNowhere && now.source != FromNowhere // is told even when it is empty
		if e := diff(told, now); (first || !e.empty()) && ctx.Err() == nil {
			f.protect(call, e)
		}
		told = now
	}
}

// protect keeps a listener that panics from ending the process, and the other listeners.
func (f *follower) protect(call func(Event), e Event) {
	defer func() {
		if p := recover(); p != nil {
			f.c.opts.Logger.Error("a subscriber panicked", "service", f.key.name, "panic", p)
		}
	}()
	call(e)
}
