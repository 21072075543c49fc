package push

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rollcall-io/rollcall/registry"
)

// log is a state that tells Watches of its changes as the state machine does: inside its
// own lock, whole entries in order.
type log struct {
	tb      testing.TB
	watches *Watches
	reg     *prometheus.Registry

	mu       sync.RWMutex
	services map[registry.ServiceKey]*registry.Service
	index    uint64
}

func newLog(tb testing.TB, change func(*WatchOptions)) *log {
	tb.Helper()
	l := &log{tb: tb, services: make(map[registry.ServiceKey]*registry.Service), reg: prometheus.NewRegistry()}
	o := DefaultWatchOptions()
	o.State, o.Metrics = l, l.reg
	if change != nil {
		change(&o)
	}
	w, err := NewWatches(o)
	if err != nil {
		tb.Fatal(err)
	}
	l.watches = w
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	tb.Cleanup(func() {
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			tb.Errorf("Run: %v", err)
		}
	})
	return l
}

func (l *log) ServiceAt(k registry.ServiceKey) (*registry.Service, uint64) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.services[k], l.index
}

func (l *log) ServicesAt(namespace string) (all []*registry.Service, index uint64) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	for k, s := range l.services {
		if k.Namespace == namespace {
			all = append(all, s)
		}
	}
	return all, l.index
}

// entry applies changes of several services as one entry. Each sets the weight of an
// instance; 0 removes it.
type change struct {
	service string
	ip      string
	weight  float64
}

func (l *log) entry(changes ...change) uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.index++
	var events []registry.ServiceEvent
	at := make(map[string]int)
	for _, c := range changes {
		ev, ok := l.apply(c)
		if !ok {
			continue
		}
		i, known := at[c.service]
		if !known {
			i = len(events)
			at[c.service] = i
			events = append(events, registry.ServiceEvent{Service: key(c.service), Index: l.index})
		}
		events[i].Changes = append(events[i].Changes, ev)
	}
	if len(events) > 0 {
		l.watches.EventsApplied(time.Now(), events)
	}
	return l.index
}

func (l *log) apply(c change) (ev registry.InstanceEvent, ok bool) {
	d := registry.NewDraft(key(c.service), 1)
	if s := l.services[key(c.service)]; s != nil {
		d = registry.Edit(s)
	}
	in := instance("DEFAULT", c.ip, 80)
	if c.weight == 0 {
		ev = registry.InstanceEvent{Reason: registry.ReasonDeregistered, Before: d.Remove(in.Address, 1)}
		if ev.Before == nil {
			return ev, false
		}
	} else {
		in.Weight = c.weight
		ev = registry.InstanceEvent{Reason: registry.ReasonRegistered, After: in}
		if ev.Before = d.Put(in); ev.Before != nil {
			ev.Reason = registry.ReasonUpdated
		}
	}
	d.Touch(l.index, 1)
	l.services[key(c.service)] = d.Service()
	return ev, true
}

// jump replaces all state as a restored snapshot does.
func (l *log) jump(changes ...change) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.index += 100
	for _, c := range changes {
		l.apply(c)
	}
	l.watches.EventsReset(l.index)
}

// contents is what the state holds of the watched services.
func (l *log) contents(w registry.Watch) (map[string]float64, uint64) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	all := make(map[string]float64)
	for k, s := range l.services {
		if w.Matches(k) {
			for _, in := range s.Instances() {
				all[k.Name()+" "+in.IP] = in.Weight
			}
		}
	}
	return all, l.index
}

// follower is a watcher that builds up the state from what it is told.
type follower struct {
	tb      testing.TB
	watch   registry.Watch
	state   map[string]float64
	resets  int
	batches int
}

func newFollower(tb testing.TB, w registry.Watch) *follower {
	return &follower{tb: tb, watch: w, state: make(map[string]float64)}
}

func (f *follower) take(b registry.WatchBatch) {
	f.tb.Helper()
	if f.watch.Resume && b.Index <= f.watch.After && !b.Reset || b.Index < f.watch.After {
		f.tb.Errorf("index %d after %d", b.Index, f.watch.After)
	}
	f.batches++
	if b.Reset {
		f.resets++
		clear(f.state)
		for _, s := range b.Services {
			for _, in := range s.Instances() {
				f.state[s.Key.Name()+" "+in.IP] = in.Weight
			}
		}
	}
	seen := make(map[string]bool)
	last := uint64(0)
	for _, e := range b.Events {
		if e.Index < last || seen[e.Service.Name()] {
			f.tb.Errorf("event of %s at %d after one at %d", e.Service, e.Index, last)
		}
		last = e.Index
		seen[e.Service.Name()] = true
		for _, c := range e.Changes {
			f.change(e.Service, c)
		}
	}
	f.watch.After, f.watch.Resume = b.Index, true
}

func (f *follower) change(k registry.ServiceKey, c registry.InstanceEvent) {
	f.tb.Helper()
	name := k.Name() + " " + addressOf(c).IP
	weight, known := f.state[name]
	if known != (c.Before != nil) || known && weight != c.Before.Weight {
		f.tb.Errorf("%s: told that it was %+v, held %v", name, c.Before, weight)
	}
	if c.After == nil {
		delete(f.state, name)
	} else {
		f.state[name] = c.After.Weight
	}
}

// follow takes what comes until the log stands still and all of it is there, leaving and
// coming back at random.
func (f *follower) follow(l *log, random *rand.Rand, done <-chan struct{}) {
	f.tb.Helper()
	finished := false
	for deadline := time.Now().Add(60 * time.Second); ; {
		s, err := l.watches.Watch(f.watch)
		if err != nil {
			f.tb.Error(err)
			return
		}
		for range 1 + random.IntN(20) {
			ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
			b, err := s.Next(ctx)
			cancel()
			if err == nil {
				f.take(b)
			} else if index := s.Index(); index > f.watch.After {
				f.watch.After = index
			}
		}
		s.Close()
		select {
		case <-done:
			finished = true
		default:
		}
		want, index := l.contents(f.watch)
		if finished && maps.Equal(f.state, want) {
			return
		}
		if time.Now().After(deadline) {
			f.tb.Errorf("%+v holds %v at %d, the state is %v at %d", f.watch, f.state, f.watch.After, want, index)
			return
		}
	}
}

func randomChanges(random *rand.Rand, services int) []change {
	list := make([]change, 1+random.IntN(4))
	for i := range list {
		list[i] = change{fmt.Sprintf("s%d", random.IntN(services)), fmt.Sprintf("10.0.0.%d", random.IntN(6)), float64(random.IntN(4))}
	}
	return list
}

func one(name string) registry.Watch {
	return registry.Watch{Namespace: "public", Group: "DEFAULT_GROUP", Name: name}
}

func many(prefix string) registry.Watch {
	w := one(prefix)
	w.Prefix = true
	return w
}

func reasons(e registry.ServiceEvent) (list []string) {
	for _, c := range e.Changes {
		list = append(list, c.Reason.String())
	}
	slices.Sort(list)
	return list
}
