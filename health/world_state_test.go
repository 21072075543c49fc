package health

import (
	"context"
	"time"

	"github.com/rollcall-io/rollcall/registry"
)

func (w *world) Instance(key registry.InstanceKey) *registry.Instance {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.state.Instance(key)
}

func (n *node) Instance(key registry.InstanceKey) *registry.Instance {
	n.mu.Lock()
	defer n.mu.Unlock()
	in := n.state.Instance(key)
	if n.sees != nil {
		return n.sees(in)
	}
	return in
}

func (w *world) Service(key registry.ServiceKey) *registry.Service {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.state.Service(key)
}

func (w *world) Services(ns string) []*registry.Service {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.state.Services(ns)
}

func (w *world) NamespaceIDs() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.state.Namespaces()
}

func (w *world) Tombstone(key registry.InstanceKey) (int64, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	until, found := w.tombs[key]
	return until, found
}

func (w *world) Switches() registry.Switches {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.switches
}

func (w *world) set(change func(*registry.Switches)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change(&w.switches)
}

func (w *world) Applied() uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.index
}

func (w *world) WaitApplied(ctx context.Context, index uint64) error {
	for w.Applied() < index {
		if !sleep(ctx, time.Millisecond) {
			return registry.ErrTimeout
		}
	}
	return nil
}

func (w *world) Lease(number uint32) (registry.Lease, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	l, found := w.leases[number]
	return l, found
}

func (w *world) ObserveLeases(obs registry.LeaseObserver) (stop func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, l := range w.leases {
		obs.LeaseGranted(l)
	}
	w.observed++
	id := w.observed
	w.observers[id] = obs
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.observers, id)
	}
}

func (w *world) tell(what func(registry.LeaseObserver)) {
	for _, obs := range w.observers {
		what(obs)
	}
}

// apply puts a command into the log and the state.
func (w *world) apply(node string, term uint64, c registry.Command) registry.Result {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.index++
	res := registry.Result{Index: w.index}
	switch c := c.(type) {
	case registry.Register:
		res.Err = w.put(c)
	case registry.Deregister:
		w.take(c.Key)
		w.tombs[c.Key] = time.Now().Add(10 * time.Second).UnixMilli()
	case registry.HealthBatch:
		for _, item := range c.Items {
			if c.Term != w.term || !w.flip(item) {
				res.Skipped++
			}
		}
	case registry.EvictBatch:
		for _, ref := range c.Items {
			l, found := w.leases[ref.Number]
			if c.Term != w.term || !found || l.Grant != ref.Grant {
				res.Skipped++
				continue
			}
			w.take(l.Key)
		}
	case registry.ProbeBatch:
		for _, item := range c.Items {
			w.edit(item.Key, func(in *registry.Instance) { in.Healthy = item.Healthy })
		}
	}
	w.log = append(w.log, logged{time.Now(), node, c, res.Skipped})
	return res
}

func (w *world) put(c registry.Register) *registry.Error {
	key := c.Spec.Address.In(c.Service)
	old := w.state.Instance(key)
	switch until, tombed := w.tombs[key]; {
	case old != nil && old.Ephemeral != c.Spec.Ephemeral:
		return registry.ErrKindMismatch
	case c.FromBeat && old != nil:
		return nil
	case c.FromBeat && tombed && time.Now().UnixMilli() < until:
		return registry.ErrTombstoned
	}
	t, _, _ := registry.ParseTimeouts(c.Spec.Metadata)
	at := registry.Position{Index: w.index}
	in := &registry.Instance{Spec: c.Spec, Timeouts: t, Generation: at}
	if in.Ephemeral {
		in.Grant = at
		if in.Lease = w.free(); old != nil {
			in.Lease = old.Lease
		}
	}
	w.publish(c.Service, func(d *registry.Draft) { d.Put(in) })
	if in.Ephemeral {
		w.grant(in, key)
	}
	return nil
}

func (w *world) grant(in *registry.Instance, key registry.InstanceKey) {
	l := registry.Lease{LeaseRef: refOf(in), Timeouts: in.Timeouts, Key: key, Healthy: in.Healthy}
	w.leases[in.Lease] = l
	w.tell(func(o registry.LeaseObserver) { o.LeaseGranted(l) })
}

// registerMany puts n instances with default timeouts by one change of the service.
func (w *world) registerMany(n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.publish(testService, func(d *registry.Draft) {
		for i := range n {
			w.index++
			at := registry.Position{Index: w.index}
			in := &registry.Instance{
				Spec: specOf(address(i)), Timeouts: registry.DefaultTimeouts(), Lease: w.free(), Grant: at, Generation: at,
			}
			d.Put(in)
			w.grant(in, in.Address.In(testService))
		}
	})
}

func (w *world) free() uint32 {
	n := max(w.lowest, 1)
	for ; w.leases[n].Number != 0; n++ {
	}
	w.lowest = n
	return n
}

func (w *world) take(key registry.InstanceKey) {
	in := w.state.Instance(key)
	if in == nil {
		return
	}
	w.publish(key.Service, func(d *registry.Draft) { d.Remove(key.Address(), 0) })
	if in.Ephemeral {
		delete(w.leases, in.Lease)
		w.lowest = min(w.lowest, in.Lease)
		w.tell(func(o registry.LeaseObserver) { o.LeaseReleased(refOf(in)) })
	}
}

func (w *world) flip(item registry.HealthItem) bool {
	l, found := w.leases[item.Lease]
	if !found || l.Grant != item.Grant {
		return false
	}
	l.Healthy = item.Healthy
	w.leases[item.Lease] = l
	w.edit(l.Key, func(in *registry.Instance) { in.Healthy = item.Healthy })
	w.tell(func(o registry.LeaseObserver) { o.LeaseFlipped(l.LeaseRef, item.Healthy) })
	return true
}

func (w *world) edit(key registry.InstanceKey, change func(*registry.Instance)) {
	next := *w.state.Instance(key)
	change(&next)
	w.publish(key.Service, func(d *registry.Draft) { d.Put(&next) })
}

func (w *world) publish(key registry.ServiceKey, change func(*registry.Draft)) {
	d := registry.NewDraft(key, 0)
	if s := w.state.Service(key); s != nil {
		d = registry.Edit(s)
	}
	change(d)
	w.state.Publish(d.Service())
}

func (n *node) Leader() (string, uint64, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.leader, n.term, n.leader == n.id
}

func (n *node) VerifyLeader(context.Context) error {
	n.mu.Lock()
	during := n.verifying
	n.mu.Unlock()
	if during != nil {
		during()
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.verifyErr == nil && n.leader != n.id {
		return registry.ErrNotLeader
	}
	return n.verifyErr
}

func (n *node) Propose(_ context.Context, c registry.Command) (registry.Result, error) {
	res := n.apply(n.id, 0, c)
	if res.Err != nil {
		return res, res.Err
	}
	return res, nil
}

func (n *node) ProposeAsLeader(ctx context.Context, term uint64, c registry.Command) (registry.Result, error) {
	n.mu.Lock()
	before, fail, leads := n.before, n.proposeErr, n.leader == n.id && n.term == term
	n.mu.Unlock()
	if !leads {
		return registry.Result{}, registry.ErrNotLeader
	}
	if before != nil {
		before(c)
	}
	if fail != nil {
		if err, applied := fail(c); err != nil {
			if applied {
				n.apply(n.id, term, c)
			}
			return registry.Result{}, err
		}
	}
	return n.apply(n.id, term, c), ctx.Err()
}

func (n *node) SendBeats(ctx context.Context, b registry.BeatBatch) (registry.BeatAnswer, error) {
	n.mu.Lock()
	to, fail, unfit := n.nodes[n.leader], n.sendErr, n.unfit
	n.mu.Unlock()
	if unfit {
		return registry.BeatAnswer{}, nil
	}
	if fail != nil {
		if err := fail(n.id); err != nil {
			return registry.BeatAnswer{}, err
		}
	}
	if to == nil {
		return registry.BeatAnswer{}, registry.ErrNoLeader
	}
	if !sleep(ctx, time.Millisecond) {
		return registry.BeatAnswer{}, registry.ErrUncertain
	}
	return to.keeper.HandleBeats(ctx, b)
}

// count is the number of applied commands that suit.
func (w *world) count(suits func(registry.Command) bool) (n int) {
	for _, l := range w.commands() {
		if suits(l.command) {
			n++
		}
	}
	return n
}
