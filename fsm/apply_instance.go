package fsm

import (
	"strconv"

	"github.com/rollcall-io/rollcall/registry"
)

func (t *tx) register(c *registry.Register) registry.Result {
	if err := registry.ValidateServiceKey(c.Service); err != nil {
		return t.refuse(err)
	}
	return t.put(c.Service, &c.Spec, c.FromBeat)
}

func (t *tx) update(c *registry.Update) registry.Result {
	svc := t.service(c.Service)
	if svc == nil {
		return t.refuse(registry.ErrServiceNotFound)
	}
	if !inAnyCluster(svc, &c.Spec) {
		return t.refuse(registry.ErrInstanceNotFound)
	}
	return t.put(c.Service, &c.Spec, false)
}

// inAnyCluster tells whether one of the service's clusters has an instance with the
// spec's ip, port and kind: that is all that an update asks for (Nacos 1.4.7).
func inAnyCluster(svc *registry.Service, spec *registry.Spec) bool {
	a := spec.Address
	for i := range svc.Clusters {
		a.Cluster = svc.Clusters[i].Name
		if in := svc.Instance(a); in != nil && in.Ephemeral == spec.Ephemeral {
			return true
		}
	}
	return false
}

// normal checks a spec and gives it the form in which it is stored. Weights that the
// edge should have refused for their size are clamped, what is no weight at all is not.
func normal(s *registry.Spec) (registry.Timeouts, error) {
	if s.Weight > 0 {
		s.Weight = registry.ClampWeight(s.Weight)
	}
	if _, err := registry.ValidateSpec(*s); err != nil {
		return registry.Timeouts{}, err
	}
	timeouts, _, err := registry.ParseTimeouts(s.Metadata)
	return timeouts, err
}

// put registers an instance, new or in place of the one with its address.
func (t *tx) put(k registry.ServiceKey, spec *registry.Spec, fromBeat bool) registry.Result {
	timeouts, err := normal(spec)
	if err != nil {
		return t.refuse(err)
	}
	svc := t.service(k)
	var old *registry.Instance
	if svc != nil {
		old = svc.Instance(spec.Address)
	}
	if old == nil {
		return t.putNew(k, svc, spec, timeouts, fromBeat)
	}
	if fromBeat {
		return t.done(false)
	}
	if old.Ephemeral != spec.Ephemeral {
		return t.refuse(mismatch(old))
	}
	in := *old
	in.Timeouts = timeouts
	in.Generation = t.position()
	if in.Lease != 0 {
		in.Grant = in.Generation
	}
	visible := !old.Spec.Equal(*spec)
	if visible {
		in.Spec = t.texts.spec(spec)
	}
	t.replace(k, old, &in, visible)
	return t.done(visible)
}

func mismatch(in *registry.Instance) *registry.Error {
	if in.Ephemeral {
		return registry.ErrKindMismatch.Because("instance is registered as ephemeral")
	}
	return registry.ErrKindMismatch.Because("instance is registered as persistent")
}

// position is the place of the command at work in the log.
func (t *tx) position() registry.Position {
	return registry.Position{Index: t.index, Seq: t.seq}
}

// putNew registers an instance at a free address of a service, nil when that is new too.
func (t *tx) putNew(k registry.ServiceKey, svc *registry.Service, spec *registry.Spec,
	timeouts registry.Timeouts, fromBeat bool) registry.Result {
	key := spec.Address.In(k)
	if fromBeat && t.buried(key) {
		return t.refuse(registry.ErrTombstoned)
	}
	if err := room(svc, spec.Cluster); err != nil {
		return t.refuse(err)
	}
	in := &registry.Instance{Spec: t.texts.spec(spec), Timeouts: timeouts, Generation: t.position()}
	if in.Ephemeral {
		if in.Lease = t.state.leases.lowest(); in.Lease == 0 {
			return t.refuse(registry.ErrTooManyInstances.Because("no lease is free: the limit is " +
				strconv.Itoa(maxLeases) + " ephemeral instances"))
		}
		in.Grant = in.Generation
	}
	t.clear(key)
	e := t.edit(k)
	if in.WantsSnowflake() {
		in.SnowflakeID = e.draft.FreeSnowflake()
	}
	e.draft.Put(in)
	t.state.sum.add(t.hashInstance(e.key, in))
	if in.Lease != 0 {
		t.state.leases.set(e.key, in)
		t.granted(e.key, in)
	}
	t.record(e, nil, in)
	t.show(e)
	return t.done(true)
}

// room tells whether a service may take one more instance in a cluster.
func room(svc *registry.Service, cluster string) error {
	if svc == nil {
		return nil
	}
	if svc.Len() >= registry.MaxInstances {
		return registry.ErrTooManyInstances.Because("service holds " + strconv.Itoa(svc.Len()) +
			" instances, the limit is " + strconv.Itoa(registry.MaxInstances))
	}
	return roomForCluster(svc, cluster)
}

func roomForCluster(svc *registry.Service, cluster string) error {
	if len(svc.Clusters) < registry.MaxClusters {
		return nil
	}
	if _, known := svc.Cluster(cluster); known {
		return nil
	}
	return registry.Invalid("clusterName", cluster,
		"service has "+strconv.Itoa(len(svc.Clusters))+" clusters, the limit is "+strconv.Itoa(registry.MaxClusters))
}

// replace puts a changed copy of an instance in its place.
func (t *tx) replace(k registry.ServiceKey, old, in *registry.Instance, visible bool) {
	e := t.edit(k)
	t.state.sum.sub(t.hashInstance(e.key, old))
	t.state.sum.add(t.hashInstance(e.key, in))
	e.draft.Put(in)
	if in.Lease != 0 {
		t.state.leases.set(e.key, in)
		if in.Grant != old.Grant {
			t.granted(e.key, in)
		} else if in.Healthy != old.Healthy {
			t.flipped(in)
		}
	}
	if visible {
		t.record(e, old, in)
		t.show(e)
	}
}

// remove takes an instance out of its service and returns the service's edit.
func (t *tx) remove(k registry.ServiceKey, old *registry.Instance) *edit {
	e := t.edit(k)
	t.state.sum.sub(t.hashInstance(e.key, old))
	e.draft.Remove(old.Address, t.now)
	if old.Lease != 0 {
		t.state.leases.release(old.Lease)
		t.released(old)
	}
	t.record(e, old, nil)
	t.show(e)
	return e
}

func (t *tx) deregister(c registry.Deregister) registry.Result {
	old := t.instance(c.Key)
	if old == nil {
		return t.done(false)
	}
	if (c.Kind == registry.KindEphemeral && !old.Ephemeral) || (c.Kind == registry.KindPersistent && old.Ephemeral) {
		return t.refuse(mismatch(old))
	}
	e := t.remove(c.Key.Service, old)
	if old.Ephemeral {
		t.bury(old.Address.In(e.key), old.Timeouts.Interval)
	}
	return t.done(true)
}

// instance is an instance as it stands after the commands so far.
func (t *tx) instance(k registry.InstanceKey) *registry.Instance {
	svc := t.service(k.Service)
	if svc == nil {
		return nil
	}
	return svc.Instance(k.Address())
}

func (t *tx) patch(c registry.Patch) registry.Result {
	svc := t.service(c.Key.Service)
	if svc == nil {
		return t.refuse(registry.ErrServiceNotFound)
	}
	old := svc.Instance(c.Key.Address())
	if old == nil {
		return t.refuse(registry.ErrInstanceNotFound)
	}
	in := *old
	patched(&in.Spec, &c)
	timeouts, err := normal(&in.Spec)
	if err != nil {
		return t.refuse(err)
	}
	in.Timeouts = timeouts
	visible := !old.Spec.Equal(in.Spec)
	if visible {
		in.Spec = t.texts.spec(&in.Spec)
	}
	if in.Lease != 0 {
		in.Grant = t.position()
	}
	if visible || in.Lease != 0 {
		t.replace(c.Key.Service, old, &in, visible)
	}
	return t.done(visible)
}

// patched sets the fields that a patch gives.
func patched(s *registry.Spec, c *registry.Patch) {
	if c.Weight != nil {
		s.Weight = *c.Weight
	}
	if c.Enabled != nil {
		s.Enabled = *c.Enabled
	}
	if c.Healthy != nil {
		s.Healthy = *c.Healthy
	}
	if c.App != nil {
		s.App = *c.App
	}
	switch {
	case c.Metadata != nil && c.Merge:
		s.Metadata = s.Metadata.Merge(*c.Metadata)
	case c.Metadata != nil:
		s.Metadata = *c.Metadata
	}
}
