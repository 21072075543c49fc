package fsm

import (
	"strconv"

	"github.com/rollcall-io/rollcall/internal/wire"
	"github.com/rollcall-io/rollcall/registry"
)

func (t *tx) switchSet(c registry.SwitchSet) registry.Result {
	next, err := t.state.switches.With(c.Entry, c.Value)
	if err != nil {
		return t.refuse(err)
	}
	if next == t.state.switches {
		return t.done(false)
	}
	t.state.sum.sub(t.hashSwitches())
	t.state.switches = next
	t.state.sum.add(t.hashSwitches())
	return t.done(true)
}

func (t *tx) hashSwitches() sum {
	t.buf = wire.AppendSwitches(t.buf[:0], t.state.switches)
	return hashOf(t.buf)
}

func (t *tx) namespaceCreate(c registry.NamespaceCreate) registry.Result {
	if err := registry.ValidateNamespaceRecord(c.Namespace); err != nil {
		return t.refuse(err)
	}
	if _, found := t.state.namespaces[c.Namespace.ID]; found {
		return t.refuse(registry.ErrNamespaceExists)
	}
	t.setNamespace(c.Namespace)
	return t.done(true)
}

func (t *tx) namespaceUpdate(c registry.NamespaceUpdate) registry.Result {
	before, found := t.state.namespaces[c.Namespace.ID]
	if !found {
		return t.refuse(registry.ErrNamespaceNotFound)
	}
	if err := registry.ValidateNamespaceRecord(c.Namespace); err != nil {
		return t.refuse(err)
	}
	if before == c.Namespace {
		return t.done(false)
	}
	t.dropNamespace(before)
	t.setNamespace(c.Namespace)
	return t.done(true)
}

func (t *tx) namespaceDelete(c registry.NamespaceDelete) registry.Result {
	// The services at work count as well.
	t.settleEdits()
	record, found := t.state.namespaces[c.ID]
	known := t.state.reg.Known(c.ID)
	if !found && !known {
		return t.refuse(registry.ErrNamespaceNotFound)
	}
	if n := t.state.reg.Size(c.ID); n > 0 {
		return t.refuse(registry.ErrNamespaceNotEmpty.Because("namespace holds " + strconv.Itoa(n) + " services"))
	}
	if known {
		t.state.reg.DropNamespace(c.ID)
		t.buf = wire.AppendKnown(t.buf[:0], c.ID)
		t.state.sum.sub(hashOf(t.buf))
	}
	if found {
		t.dropNamespace(record)
	}
	return t.done(true)
}

func (t *tx) setNamespace(n registry.Namespace) {
	n = registry.Namespace{ID: t.texts.get(n.ID), Name: t.texts.get(n.Name), Description: t.texts.get(n.Description)}
	t.state.namespaces[n.ID] = n
	t.state.sum.add(t.hashNamespace(n))
}

func (t *tx) dropNamespace(n registry.Namespace) {
	delete(t.state.namespaces, n.ID)
	t.state.sum.sub(t.hashNamespace(n))
}

func (t *tx) hashNamespace(n registry.Namespace) sum {
	t.buf = wire.AppendNamespace(t.buf[:0], n)
	return hashOf(t.buf)
}

func (t *tx) clusterInit(c registry.ClusterInit) registry.Result {
	own := &t.state.globals.ClusterID
	switch {
	case c.ClusterID == "":
		return t.refuse(registry.Invalid("clusterId", "", "must not be empty"))
	case *own == c.ClusterID:
		return t.done(false)
	case *own != "":
		return t.refuse(registry.ErrGuardFailed.Because("cluster id is " + *own + " already"))
	}
	*own = t.texts.get(c.ClusterID)
	return t.done(true)
}

func (t *tx) termStart(c registry.TermStart) registry.Result {
	if c.Term != t.term {
		return t.refuse(registry.ErrGuardFailed.Because("entry belongs to term " + strconv.FormatUint(t.term, 10)))
	}
	t.state.globals.TermStart = t.term
	return t.done(false)
}

func (t *tx) featureLevel(c registry.FeatureLevel) registry.Result {
	own := &t.state.globals.Level
	if c.Level < *own {
		return t.refuse(registry.ErrGuardFailed.Because("feature level is " + strconv.Itoa(int(*own)) + " already"))
	}
	changed := c.Level > *own
	*own = c.Level
	return t.done(changed)
}
