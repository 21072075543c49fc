package fsm

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/rollcall-io/rollcall/registry"
)

func (t *tx) serviceCreate(c registry.ServiceCreate) registry.Result {
	if err := registry.ValidateServiceKey(c.Key); err != nil {
		return t.refuse(err)
	}
	spec, err := t.normalService(c.Spec)
	if err != nil {
		return t.refuse(err)
	}
	if t.service(c.Key) != nil {
		return t.refuse(registry.ErrServiceExists)
	}
	e := t.edit(c.Key)
	e.draft.SetSpec(spec)
	e.draft.SetManual()
	e.edited = true
	t.show(e)
	return t.done(true)
}

// serviceUpdate makes the service one that was made by hand: its clean-up would lose
// what an operator set.
func (t *tx) serviceUpdate(c registry.ServiceUpdate) registry.Result {
	svc := t.service(c.Key)
	if svc == nil {
		return t.refuse(registry.ErrServiceNotFound)
	}
	spec, err := t.normalService(c.Spec)
	if err != nil {
		return t.refuse(err)
	}
	visible := svc.ProtectThreshold != spec.ProtectThreshold || svc.Selector != spec.Selector ||
		!svc.Metadata.Equal(spec.Metadata)
	if !visible && svc.Manual {
		return t.done(false)
	}
	e := t.edit(c.Key)
	e.draft.SetManual()
	if visible {
		e.draft.SetSpec(spec)
		e.edited = true
		t.show(e)
	}
	return t.done(visible)
}

// normalService checks a service's settings and copies their texts.
func (t *tx) normalService(s registry.ServiceSpec) (registry.ServiceSpec, error) {
	if s.Selector.Type == "" {
		s.Selector.Type = registry.SelectorNone
	}
	if err := registry.ValidateServiceSpec(s); err != nil {
		return s, err
	}
	s.Metadata = t.texts.metadata(s.Metadata)
	s.Selector.Type = t.texts.get(s.Selector.Type)
	s.Selector.Expression = t.texts.get(s.Selector.Expression)
	return s, nil
}

func (t *tx) serviceDelete(c registry.ServiceDelete) registry.Result {
	svc := t.service(c.Key)
	switch {
	case svc == nil:
		return t.refuse(registry.ErrServiceNotFound)
	case c.IfRevision != 0 && (svc.Revision != c.IfRevision || svc.Manual || svc.Len() > 0):
		return t.refuse(registry.ErrGuardFailed)
	case svc.Len() > 0:
		return t.refuse(registry.ErrServiceNotEmpty.Because("service has " + strconv.Itoa(svc.Len()) + " instances"))
	}
	// A service made anew under the name goes on above this stamp.
	t.state.globals.DeletedStamp = max(t.state.globals.DeletedStamp, svc.Stamp)
	e := t.edit(c.Key)
	e.draft = nil
	e.edited = true
	e.visible, e.changed = true, t.index
	return t.done(true)
}

// clusterUpdate, like serviceUpdate, makes the service one that was made by hand.
func (t *tx) clusterUpdate(c registry.ClusterUpdate) registry.Result {
	svc := t.service(c.Key)
	if svc == nil {
		return t.refuse(registry.ErrServiceNotFound)
	}
	if err := registry.ValidateClusterSettings(c.Cluster); err != nil {
		return t.refuse(err)
	}
	if err := roomForCluster(svc, c.Cluster.Name); err != nil {
		return t.refuse(err)
	}
	before, known := svc.Cluster(c.Cluster.Name)
	visible := !known || !sameCluster(before, c.Cluster)
	if !visible && svc.Manual {
		return t.done(false)
	}
	e := t.edit(c.Key)
	e.draft.SetManual()
	if visible {
		e.draft.PutCluster(t.texts.cluster(c.Cluster))
		e.edited = true
		t.show(e)
	}
	return t.done(visible)
}

func sameCluster(a, b registry.Cluster) bool {
	return a.Name == b.Name && a.Checker == b.Checker && a.CheckPort == b.CheckPort &&
		a.UseInstancePort == b.UseInstancePort && a.Metadata.Equal(b.Metadata)
}

// EmptyServices lists deletions, at most max, of services that have been empty since
// before, a time in milliseconds, or longer and were not made by hand, the longest empty
// first. Each names the revision at which the service was found, so that a registration
// in between lets it stay.
func (f *FSM) EmptyServices(before int64, max int) []registry.ServiceDelete {
	f.mu.RLock()
	defer f.mu.RUnlock()
	var due []*registry.Service
	for k := range f.state.empty { // order-free: sorted below
		if svc := f.state.reg.Service(k); svc != nil && svc.EmptySince <= before {
			due = append(due, svc)
		}
	}
	slices.SortFunc(due, func(a, b *registry.Service) int {
		return cmp.Or(cmp.Compare(a.EmptySince, b.EmptySince), a.Key.Compare(b.Key))
	})
	list := make([]registry.ServiceDelete, 0, min(max, len(due)))
	for _, svc := range due[:cap(list)] {
		list = append(list, registry.ServiceDelete{Key: svc.Key, IfRevision: svc.Revision})
	}
	return list
}
