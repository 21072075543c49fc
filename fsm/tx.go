package fsm

import (
	"errors"
	"strings"

	"github.com/hashicorp/raft"

	"github.com/rollcall-io/rollcall/internal/wire"
	"github.com/rollcall-io/rollcall/registry"
)

// tx applies the entries of one batch. Services are edited as drafts, one for each
// service and batch, and published by flush; whatever else is in the state is changed
// in place, under the FSM's lock. Only what belongs to an entry (its index, its time)
// may reach the state, since a batch is an accident of one node.
type tx struct {
	f     *FSM
	state *state

	edits map[registry.ServiceKey]*edit
	order []*edit // as they were begun
	dirty []*edit // changed since the entry began
	last  *edit

	// of the entry and command at work
	index uint64
	term  uint64
	now   int64
	seq   uint32
	kind  wire.Kind

	events []registry.ServiceEvent // of the batch so far

	texts  interner
	buf    []byte
	counts [wire.KindEnd][outcomes]int
}

// edit is one service at work.
type edit struct {
	key   registry.ServiceKey
	draft *registry.Draft // nil when the service is not there
	// hash is that of the service's record as the sum holds it, zero when there is none.
	hash    sum
	dirty   bool
	visible bool   // a client can see a change
	changed uint64 // index of the last one

	// changes and edited are what the entry at work did, for its event.
	changes []registry.InstanceEvent
	edited  bool
}

func newTx(f *FSM) *tx {
	return &tx{f: f, state: f.state, edits: make(map[registry.ServiceKey]*edit), texts: newInterner()}
}

// entry applies one entry and returns a result for each of its commands.
func (t *tx) entry(l *raft.Log, e *registry.Entry) []registry.Result {
	t.index, t.term = l.Index, l.Term
	t.now = max(e.Time, t.state.globals.LastTime)
	t.state.globals.LastTime = t.now
	t.dropPast()
	results := make([]registry.Result, len(e.Commands))
	for i, c := range e.Commands {
		t.seq, t.kind = uint32(i), wire.KindOf(c)
		results[i] = t.apply(c)
		t.counts[t.kind][outcomeOf(&results[i])]++
	}
	t.settle()
	return results
}

// settle brings the sum up to date at the end of an entry.
func (t *tx) settle() {
	for _, e := range t.dirty {
		e.dirty = false
		t.emit(e)
		t.state.sum.sub(e.hash)
		e.hash = sum{}
		if e.draft != nil {
			e.hash = t.hashService(e.draft.Service())
			t.state.sum.add(e.hash)
		}
	}
	t.dirty = t.dirty[:0]
	t.state.sum.sub(t.state.globalsHash)
	t.buf = wire.AppendGlobals(t.buf[:0], t.state.globals)
	t.state.globalsHash = hashOf(t.buf)
	t.state.sum.add(t.state.globalsHash)
}

// flush publishes what was edited and feeds the changes.
func (t *tx) flush() {
	t.settleEdits()
	t.tellEvents()
	t.f.feed.kick()
}

func (t *tx) settleEdits() {
	for _, e := range t.order {
		if e.draft != nil {
			t.state.publish(e.draft.Service())
		} else {
			t.state.remove(e.key)
		}
		if e.visible {
			t.f.feed.changed(e.key, e.changed)
		}
	}
	clear(t.edits)
	clear(t.order)
	t.order, t.last = t.order[:0], nil
}

// find is the edit of a service, nil when it was not begun.
func (t *tx) find(k registry.ServiceKey) *edit {
	if t.last != nil && t.last.key == k {
		return t.last
	}
	e := t.edits[k]
	if e != nil {
		t.last = e
	}
	return e
}

// service is a service as it stands after the commands so far, nil when it is not there.
func (t *tx) service(k registry.ServiceKey) *registry.Service {
	if e := t.find(k); e == nil {
		return t.state.reg.Service(k)
	} else if e.draft == nil {
		return nil
	} else {
		return e.draft.Service()
	}
}

// edit begins or goes on with the edit of a service, made empty when it is not there.
func (t *tx) edit(k registry.ServiceKey) *edit {
	e := t.find(k)
	if e == nil {
		e = t.begin(k)
	}
	if e.draft == nil {
		if t.state.reg.AddNamespace(e.key.Namespace) {
			t.buf = wire.AppendKnown(t.buf[:0], e.key.Namespace)
			t.state.sum.add(hashOf(t.buf))
		}
		e.draft = registry.NewDraft(e.key, t.now)
		e.draft.Service().Stamp = t.state.globals.DeletedStamp
	}
	t.touch(e)
	return e
}

func (t *tx) begin(k registry.ServiceKey) *edit {
	e := &edit{key: k}
	if before := t.state.reg.Service(k); before != nil {
		e.key = before.Key
		e.draft = registry.Edit(before)
		e.hash = t.hashService(before)
	} else {
		// The texts of a command are parts of its whole entry.
		e.key = registry.ServiceKey{Namespace: t.texts.get(k.Namespace), Grouped: strings.Clone(k.Grouped)}
	}
	t.edits[e.key] = e
	t.order = append(t.order, e)
	t.last = e
	return e
}

// touch notes that the record of an edited service changes.
func (t *tx) touch(e *edit) {
	if !e.dirty {
		e.dirty = true
		t.dirty = append(t.dirty, e)
	}
}

// show records a change that a client can see.
func (t *tx) show(e *edit) {
	e.draft.Touch(t.index, t.now)
	e.visible, e.changed = true, t.index
}

func (t *tx) hashService(s *registry.Service) sum {
	t.buf = wire.AppendService(t.buf[:0], s)
	return hashOf(t.buf)
}

func (t *tx) hashInstance(k registry.ServiceKey, in *registry.Instance) sum {
	t.buf = wire.AppendInstance(t.buf[:0], k, in)
	return hashOf(t.buf)
}

// done is the result of a command that was carried out.
func (t *tx) done(changed bool) registry.Result {
	return registry.Result{Index: t.index, Changed: changed}
}

// refuse is the result of a command that left the state as it was.
func (t *tx) refuse(err error) registry.Result {
	var e *registry.Error
	if !errors.As(err, &e) {
		e = registry.ErrInvalid.Because(err.Error())
	}
	return registry.Result{Index: t.index, Err: e}
}
