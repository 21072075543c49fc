package fsm

import (
	"container/heap"

	"github.com/rollcall-io/rollcall/registry"
)

// maxLeases bounds the lease numbers, and so the ephemeral instances of the registry.
const maxLeases = 1 << 24

// leases is the table of leases: by number, the instance that the lease keeps. Grant,
// timeouts and health are those of the instance, so there is one copy of them.
type leases struct {
	slots []leaseSlot // number-1
	free  numbers     // of released slots
}

type leaseSlot struct {
	key registry.ServiceKey
	in  *registry.Instance // nil when the number is free
}

// numbers is a min-heap.
type numbers []uint32

func (n numbers) Len() int           { return len(n) }
func (n numbers) Less(i, j int) bool { return n[i] < n[j] }
func (n numbers) Swap(i, j int)      { n[i], n[j] = n[j], n[i] }
func (n *numbers) Push(x any)        { *n = append(*n, x.(uint32)) }
func (n *numbers) Pop() any {
	last := (*n)[len(*n)-1]
	*n = (*n)[:len(*n)-1]
	return last
}

// lowest is the lowest free number, from 1, and takes it; 0 when there is none. It
// follows from the set of numbers in use alone.
func (l *leases) lowest() uint32 {
	if len(l.free) > 0 {
		return heap.Pop(&l.free).(uint32)
	}
	if len(l.slots) >= maxLeases {
		return 0
	}
	l.slots = append(l.slots, leaseSlot{})
	return uint32(len(l.slots))
}

// set makes an instance the one that its lease keeps.
func (l *leases) set(key registry.ServiceKey, in *registry.Instance) {
	l.slots[in.Lease-1] = leaseSlot{key, in}
}

func (l *leases) release(number uint32) {
	l.slots[number-1] = leaseSlot{}
	heap.Push(&l.free, number)
}

// inUse is the number of leases.
func (l *leases) inUse() int { return len(l.slots) - len(l.free) }

// at is the instance of one grant of a lease, nil when that is over.
func (l *leases) at(number uint32, grant registry.Position) (registry.ServiceKey, *registry.Instance) {
	if number == 0 || uint64(number) > uint64(len(l.slots)) {
		return registry.ServiceKey{}, nil
	}
	slot := &l.slots[number-1]
	if slot.in == nil || slot.in.Grant != grant {
		return registry.ServiceKey{}, nil
	}
	return slot.key, slot.in
}

func leaseOf(key registry.ServiceKey, in *registry.Instance) registry.Lease {
	return registry.Lease{
		LeaseRef: refOf(in), Timeouts: in.Timeouts, Key: in.Address.In(key), Healthy: in.Healthy,
	}
}

func refOf(in *registry.Instance) registry.LeaseRef {
	return registry.LeaseRef{Number: in.Lease, Grant: in.Grant}
}

// each calls do for every lease in the order of numbers.
func (l *leases) each(do func(registry.Lease)) {
	for i := range l.slots {
		if slot := &l.slots[i]; slot.in != nil {
			do(leaseOf(slot.key, slot.in))
		}
	}
}

// Lease is the lease of a number, and whether the number is in use.
func (f *FSM) Lease(number uint32) (registry.Lease, bool) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	if number == 0 || uint64(number) > uint64(len(f.state.leases.slots)) {
		return registry.Lease{}, false
	}
	slot := f.state.leases.slots[number-1]
	if slot.in == nil {
		return registry.Lease{}, false
	}
	return leaseOf(slot.key, slot.in), true
}

// registration is one observer; its address tells two apart.
type registration struct{ registry.LeaseObserver }

// ObserveLeases tells an observer of a LeaseGranted for each lease there is and then of
// every change, in log order, without a gap. It blocks Apply for the former. The
// observer is called under the state's lock: it must not block nor call the FSM. After
// stop returns it is not called again; stop must not be called by an observer.
func (f *FSM) ObserveLeases(o registry.LeaseObserver) (stop func()) {
	r := &registration{o}
	f.mu.Lock()
	f.state.leases.each(o.LeaseGranted)
	f.observers = append(f.observers, r)
	f.mu.Unlock()
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		for i := range f.observers {
			if f.observers[i] == r {
				f.observers = append(f.observers[:i:i], f.observers[i+1:]...)
				return
			}
		}
	}
}

func (t *tx) granted(key registry.ServiceKey, in *registry.Instance) {
	for _, o := range t.f.observers {
		o.LeaseGranted(leaseOf(key, in))
	}
}

func (t *tx) flipped(in *registry.Instance) {
	for _, o := range t.f.observers {
		o.LeaseFlipped(refOf(in), in.Healthy)
	}
}

func (t *tx) released(in *registry.Instance) {
	for _, o := range t.f.observers {
		o.LeaseReleased(refOf(in))
	}
}
