package fsm

import (
	"maps"
	"slices"

	"github.com/rollcall-io/rollcall/registry"
)

// model is a second, naive statement of what the commands about instances mean: maps,
// no batches, no drafts, no digests.
type model struct {
	instances map[registry.InstanceKey]registry.Instance
	manual    map[registry.ServiceKey]bool // of every service there is
	revision  map[registry.ServiceKey]uint64
	tombs     map[registry.InstanceKey]int64

	index, term uint64
	now         int64
}

func newModel() *model {
	return &model{
		instances: map[registry.InstanceKey]registry.Instance{}, manual: map[registry.ServiceKey]bool{},
		revision: map[registry.ServiceKey]uint64{}, tombs: map[registry.InstanceKey]int64{},
	}
}

// verdict is what the model says of a result: an error's code, 0 for none, and whether
// anything visible changed.
type verdict struct {
	code    registry.Code
	changed bool
}

func no(err *registry.Error) verdict { return verdict{code: err.Code} }

func (m *model) position() registry.Position { return registry.Position{Index: m.index} }

func (m *model) shown(k registry.ServiceKey) verdict {
	m.revision[k] = m.index
	return verdict{changed: true}
}

func (m *model) freeLease() uint32 {
	for n := uint32(1); ; n++ {
		taken := false
		for _, in := range m.instances {
			taken = taken || in.Lease == n
		}
		if !taken {
			return n
		}
	}
}

func (m *model) freeID(k registry.ServiceKey) uint32 {
	for n := uint32(1); ; n++ {
		taken := false
		for key, in := range m.instances {
			taken = taken || key.Service == k && in.SnowflakeID == n
		}
		if !taken {
			return n
		}
	}
}

func (m *model) register(k registry.ServiceKey, s registry.Spec, fromBeat bool) verdict {
	if s.Weight > 10_000 {
		s.Weight = 10_000
	}
	if s.Weight > 0 && s.Weight < 0.01 {
		s.Weight = 0.01
	}
	if _, err := registry.ValidateSpec(s); err != nil {
		return no(registry.ErrInvalid)
	}
	timeouts, _, _ := registry.ParseTimeouts(s.Metadata)
	key := s.Address.In(k)
	old, there := m.instances[key]
	switch {
	case there && fromBeat:
		return verdict{}
	case there && old.Ephemeral != s.Ephemeral:
		return no(registry.ErrKindMismatch)
	case !there && fromBeat && m.tombs[key] > m.now:
		return no(registry.ErrTombstoned)
	}
	in := registry.Instance{Spec: s, Timeouts: timeouts, Generation: m.position()}
	switch {
	case there:
		in.Lease, in.SnowflakeID = old.Lease, old.SnowflakeID
	case s.Ephemeral:
		in.Lease = m.freeLease()
	}
	if v, _ := s.Metadata.Get(registry.KeyIDGenerator); !there && v == "snowflake" {
		in.SnowflakeID = m.freeID(k)
	}
	if s.Ephemeral {
		in.Grant = in.Generation
	}
	m.instances[key] = in
	delete(m.tombs, key)
	if _, known := m.manual[k]; !known {
		m.manual[k] = false
	}
	if there && old.Spec.Equal(s) {
		return verdict{}
	}
	return m.shown(k)
}

func (m *model) update(c registry.Update) verdict {
	if _, known := m.manual[c.Service]; !known {
		return no(registry.ErrServiceNotFound)
	}
	for key, in := range m.instances {
		if key.Service == c.Service && in.IP == c.Spec.IP && in.Port == c.Spec.Port && in.Ephemeral == c.Spec.Ephemeral {
			return m.register(c.Service, c.Spec, false)
		}
	}
	return no(registry.ErrInstanceNotFound)
}

func (m *model) deregister(c registry.Deregister) verdict {
	in, there := m.instances[c.Key]
	if !there {
		return verdict{}
	}
	if c.Kind != registry.AnyKind && (c.Kind == registry.KindEphemeral) != in.Ephemeral {
		return no(registry.ErrKindMismatch)
	}
	delete(m.instances, c.Key)
	if in.Ephemeral {
		m.tombs[c.Key] = m.now + 2*int64(in.Timeouts.Interval)
	}
	return m.shown(c.Key.Service)
}

func (m *model) patch(c registry.Patch) verdict {
	if _, known := m.manual[c.Key.Service]; !known {
		return no(registry.ErrServiceNotFound)
	}
	old, there := m.instances[c.Key]
	if !there {
		return no(registry.ErrInstanceNotFound)
	}
	s := old.Spec
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
	if c.Metadata != nil {
		pairs := []registry.Pair(*c.Metadata)
		if c.Merge {
			pairs = append(slices.Clone([]registry.Pair(s.Metadata)), pairs...)
		}
		s.Metadata = registry.NewMetadata(pairs)
	}
	v := m.register(c.Key.Service, s, false)
	if v.code == 0 {
		in := m.instances[c.Key]
		in.Generation = old.Generation
		m.instances[c.Key] = in
	}
	return v
}

func (m *model) metadataBatch(c registry.MetadataBatch) verdict {
	next := maps.Clone(m.instances)
	v := verdict{}
	for key, in := range m.instances {
		if key.Service != c.Service || !wanted(c, in) {
			continue
		}
		old := in
		if c.Delete {
			in.Metadata = in.Metadata.Without(c.Metadata)
		} else {
			in.Metadata = in.Metadata.Merge(c.Metadata)
		}
		timeouts, _, err := registry.ParseTimeouts(in.Metadata)
		if err != nil {
			return no(registry.ErrInvalid)
		}
		if timeouts != in.Timeouts && in.Ephemeral {
			in.Grant = m.position()
		}
		in.Timeouts = timeouts
		next[key] = in
		v.changed = v.changed || !in.Metadata.Equal(old.Metadata)
	}
	m.instances = next
	if v.changed {
		m.shown(c.Service)
	}
	return v
}

func wanted(c registry.MetadataBatch, in registry.Instance) bool {
	if len(c.Targets) > 0 {
		return slices.Contains(c.Targets, registry.Target{Address: in.Address, Ephemeral: in.Ephemeral})
	}
	return c.Kind == registry.AnyKind || (c.Kind == registry.KindEphemeral) == in.Ephemeral
}

// lease is the key of the instance behind one grant of a lease.
func (m *model) lease(number uint32, grant registry.Position) (registry.InstanceKey, bool) {
	for key, in := range m.instances {
		if number != 0 && in.Lease == number && in.Grant == grant {
			return key, true
		}
	}
	return registry.InstanceKey{}, false
}

func (m *model) setHealth(key registry.InstanceKey, healthy bool) bool {
	in := m.instances[key]
	changed := in.Healthy != healthy
	in.Healthy = healthy
	m.instances[key] = in
	if changed {
		m.shown(key.Service)
	}
	return changed
}

func (m *model) leaderBatch(c registry.Command) verdict {
	v := verdict{}
	switch c := c.(type) {
	case registry.HealthBatch:
		for _, item := range c.Items {
			if key, there := m.lease(item.Lease, item.Grant); there && c.Term == m.term {
				v.changed = m.setHealth(key, item.Healthy) || v.changed
			}
		}
	case registry.ProbeBatch:
		for _, item := range c.Items {
			in, there := m.instances[item.Key]
			if there && !in.Ephemeral && in.Generation == item.Generation && c.Term == m.term {
				v.changed = m.setHealth(item.Key, item.Healthy) || v.changed
			}
		}
	case registry.EvictBatch:
		for _, item := range c.Items {
			if key, there := m.lease(item.Number, item.Grant); there && c.Term == m.term {
				delete(m.instances, key)
				v = m.shown(key.Service)
			}
		}
	}
	return v
}

func (m *model) serviceDelete(c registry.ServiceDelete) verdict {
	if _, known := m.manual[c.Key]; !known {
		return no(registry.ErrServiceNotFound)
	}
	full := false
	for key := range m.instances {
		full = full || key.Service == c.Key
	}
	switch {
	case c.IfRevision != 0 && (full || m.manual[c.Key] || m.revision[c.Key] != c.IfRevision):
		return no(registry.ErrGuardFailed)
	case full:
		return no(registry.ErrServiceNotEmpty)
	}
	delete(m.manual, c.Key)
	delete(m.revision, c.Key)
	return verdict{changed: true}
}

func (m *model) apply(c registry.Command) verdict {
	switch c := c.(type) {
	case registry.Register:
		if registry.ValidateServiceKey(c.Service) != nil {
			return no(registry.ErrInvalid)
		}
		return m.register(c.Service, c.Spec, c.FromBeat)
	case registry.Update:
		return m.update(c)
	case registry.Deregister:
		return m.deregister(c)
	case registry.Patch:
		return m.patch(c)
	case registry.MetadataBatch:
		return m.metadataBatch(c)
	case registry.ServiceDelete:
		return m.serviceDelete(c)
	case registry.TermStart:
		if c.Term != m.term {
			return no(registry.ErrGuardFailed)
		}
		return verdict{}
	}
	return m.leaderBatch(c)
}
