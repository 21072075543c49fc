package fsm

import "github.com/rollcall-io/rollcall/registry"

// Service is the present value of a service, nil when it is not there. It is immutable
// and stays as it is for as long as the caller keeps it.
func (f *FSM) Service(k registry.ServiceKey) *registry.Service {
	f.mu.RLock()
	s := f.state.reg.Service(k)
	f.mu.RUnlock()
	return s
}

// Instance is the present value of an instance, nil when it is not there. It is
// immutable.
func (f *FSM) Instance(k registry.InstanceKey) *registry.Instance {
	if s := f.Service(k.Service); s != nil {
		return s.Instance(k.Address())
	}
	return nil
}

// Services are the services of a namespace, sorted by grouped name.
func (f *FSM) Services(namespace string) []*registry.Service {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.state.reg.Services(namespace)
}

// NamespaceIDs are the ids of all namespaces in which a service was ever registered,
// sorted; with a record or without.
func (f *FSM) NamespaceIDs() []string {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.state.reg.Namespaces()
}

// Namespaces are the records of namespaces, sorted by id.
func (f *FSM) Namespaces() []registry.Namespace {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.state.records()
}

// Counts are the numbers of services and of instances.
func (f *FSM) Counts() (services, instances int) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.state.reg.Counts()
}

// Switches are the replicated settings of the cluster.
func (f *FSM) Switches() registry.Switches {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.state.switches
}

// Accounts are the users, roles and permissions. The value is immutable.
func (f *FSM) Accounts() *registry.Accounts {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.state.accounts
}

// ClusterID is the id that the cluster was given at its bootstrap, empty before.
func (f *FSM) ClusterID() string {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.state.globals.ClusterID
}

// FeatureLevel is the level up to which command kinds and versions may be used.
func (f *FSM) FeatureLevel() uint32 {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.state.globals.Level
}

// DeletedStamp is the highest change stamp of a deleted service, 0 when none was ever
// deleted: a service made anew under any name goes on above it.
func (f *FSM) DeletedStamp() int64 {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.state.globals.DeletedStamp
}

// LastTime is the highest entry time so far, in milliseconds: the time by which
// tombstones end and services have been empty.
func (f *FSM) LastTime() int64 {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.state.globals.LastTime
}

// Unchanged tells whether a registration would change nothing that a client can see, so
// that its lease need only be renewed; ref is that lease, zero for a persistent instance.
func (f *FSM) Unchanged(c registry.Register) (ref registry.LeaseRef, same bool) {
	in := f.Instance(c.Spec.Address.In(c.Service))
	if in == nil {
		return registry.LeaseRef{}, false
	}
	if c.Spec.Weight > 0 {
		c.Spec.Weight = registry.ClampWeight(c.Spec.Weight)
	}
	if !in.Spec.Equal(c.Spec) {
		return registry.LeaseRef{}, false
	}
	return refOf(in), true
}
