package fsm

import (
	"cmp"
	"container/heap"
	"slices"
	"strings"

	"github.com/rollcall-io/rollcall/internal/wire"
	"github.com/rollcall-io/rollcall/registry"
)

const (
	// maxTombstones bounds the marks; beyond it the one that ends first is dropped early.
	maxTombstones = 1 << 20
	// maxDropped bounds how many marks one entry drops because their time is over. An
	// entry leaves at most 256, so the bound only spreads what a long pause left.
	maxDropped = 1024
)

// tombstone marks a key that was deregistered. It stands while the entry time is below
// until, in milliseconds.
type tombstone struct {
	key   registry.InstanceKey
	until int64
	at    int // place in the queue
}

// tombstones holds the marks by key and in a queue ordered by end, then by key.
type tombstones struct {
	byKey map[registry.InstanceKey]*tombstone
	queue tombQueue
}

type tombQueue []*tombstone

func newTombstones() tombstones {
	return tombstones{byKey: make(map[registry.InstanceKey]*tombstone)}
}

func (q tombQueue) Len() int { return len(q) }
func (q tombQueue) Less(i, j int) bool {
	if q[i].until != q[j].until {
		return q[i].until < q[j].until
	}
	return compareKeys(q[i].key, q[j].key) < 0
}
func (q tombQueue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].at, q[j].at = i, j
}
func (q *tombQueue) Push(x any) {
	t := x.(*tombstone)
	t.at = len(*q)
	*q = append(*q, t)
}
func (q *tombQueue) Pop() any {
	last := (*q)[len(*q)-1]
	(*q)[len(*q)-1] = nil
	*q = (*q)[:len(*q)-1]
	return last
}

func compareKeys(a, b registry.InstanceKey) int {
	return cmp.Or(a.Service.Compare(b.Service), strings.Compare(a.Cluster, b.Cluster),
		strings.Compare(a.IP, b.IP), cmp.Compare(a.Port, b.Port))
}

// add puts a mark on a key that has none. The key's texts are kept.
func (s *tombstones) add(key registry.InstanceKey, until int64) {
	t := &tombstone{key: key, until: until}
	s.byKey[key] = t
	heap.Push(&s.queue, t)
}

func (s *tombstones) drop(t *tombstone) {
	heap.Remove(&s.queue, t.at)
	delete(s.byKey, t.key)
}

// first is the mark that ends first, nil when there is none.
func (s *tombstones) first() *tombstone {
	if len(s.queue) == 0 {
		return nil
	}
	return s.queue[0]
}

// copies are all marks in no order.
func (s *tombstones) copies() []tombstone {
	all := make([]tombstone, 0, len(s.queue))
	for _, t := range s.queue {
		all = append(all, *t)
	}
	return all
}

// sortTombstones puts marks in the order of their keys.
func sortTombstones(all []tombstone) []tombstone {
	slices.SortFunc(all, func(a, b tombstone) int { return compareKeys(a.key, b.key) })
	return all
}

// bury marks the key of a deregistered ephemeral instance for two of its beat intervals.
// The key has no mark: registering the instance took it off.
func (t *tx) bury(key registry.InstanceKey, interval uint32) {
	tombs := &t.state.tombs
	if len(tombs.queue) >= maxTombstones {
		t.clear(tombs.first().key)
	}
	until := t.now + 2*int64(interval)
	tombs.add(key, until)
	t.state.sum.add(t.hashTombstone(key, until))
}

// clear takes the mark off a key, if there is one.
func (t *tx) clear(key registry.InstanceKey) {
	if mark := t.state.tombs.byKey[key]; mark != nil {
		t.state.sum.sub(t.hashTombstone(mark.key, mark.until))
		t.state.tombs.drop(mark)
	}
}

// buried tells whether a key's mark stands at the entry's time.
func (t *tx) buried(key registry.InstanceKey) bool {
	mark := t.state.tombs.byKey[key]
	return mark != nil && t.now < mark.until
}

// dropPast takes off the marks whose time is over.
func (t *tx) dropPast() {
	for range maxDropped {
		mark := t.state.tombs.first()
		if mark == nil || t.now < mark.until {
			return
		}
		t.clear(mark.key)
	}
}

func (t *tx) hashTombstone(key registry.InstanceKey, until int64) sum {
	t.buf = wire.AppendTombstone(t.buf[:0], key, until)
	return hashOf(t.buf)
}

// Tombstone tells until when, in milliseconds of entry time, a key's tombstone stands,
// and whether it stands at the time of the last entry. That time rests while nothing is
// applied: who proposes an entry compares the end with the time that it would give it.
func (f *FSM) Tombstone(key registry.InstanceKey) (untilMs int64, found bool) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	mark := f.state.tombs.byKey[key]
	if mark == nil || f.state.globals.LastTime >= mark.until {
		return 0, false
	}
	return mark.until, true
}
