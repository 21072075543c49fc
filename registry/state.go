package registry

import (
	"maps"
	"slices"
	"strings"
)

// State is the double map: namespace -> group@@service -> Service. It is not safe for
// concurrent use; fsm guards it with its lock. The services in it are immutable.
type State struct {
	namespaces map[string]map[string]*Service
	services   int
	instances  int
}

// NewState is an empty double map.
func NewState() *State { return &State{namespaces: make(map[string]map[string]*Service)} }

// Service is the published service of a key, or nil.
func (s *State) Service(k ServiceKey) *Service { return s.namespaces[k.Namespace][k.Grouped] }

// Instance is a registered instance, or nil.
func (s *State) Instance(k InstanceKey) *Instance {
	svc := s.Service(k.Service)
	if svc == nil {
		return nil
	}
	return svc.Instance(k.Address())
}

// Publish swaps in a service in place of the one with its key, which is returned,
// else nil.
func (s *State) Publish(next *Service) (before *Service) {
	inner := s.namespaces[next.Key.Namespace]
	if inner == nil {
		inner = make(map[string]*Service)
		s.namespaces[next.Key.Namespace] = inner
	}
	before = inner[next.Key.Grouped]
	inner[next.Key.Grouped] = next
	s.instances += next.Len()
	if before == nil {
		s.services++
	} else {
		s.instances -= before.Len()
	}
	return before
}

// Delete drops a service and returns it, or nil when there was none. Its namespace
// stays known, empty, as in Nacos.
func (s *State) Delete(k ServiceKey) (before *Service) {
	before = s.Service(k)
	if before == nil {
		return nil
	}
	delete(s.namespaces[k.Namespace], k.Grouped)
	s.services--
	s.instances -= before.Len()
	return before
}

// Services are the services of a namespace, sorted by grouped name.
func (s *State) Services(namespace string) []*Service {
	return slices.SortedFunc(maps.Values(s.namespaces[namespace]), func(a, b *Service) int {
		return strings.Compare(a.Key.Grouped, b.Key.Grouped)
	})
}

// Namespaces are the ids of all namespaces in which a service was ever registered,
// sorted.
func (s *State) Namespaces() []string { return slices.Sorted(maps.Keys(s.namespaces)) }

// Counts are the numbers of services and of instances.
func (s *State) Counts() (services, instances int) { return s.services, s.instances }

// Clone copies the two maps and no service: a few milliseconds for 100,000 services.
func (s *State) Clone() *State {
	c := &State{namespaces: make(map[string]map[string]*Service, len(s.namespaces)), services: s.services, instances: s.instances}
	// order-free: copies a map into a map
	for ns, inner := range s.namespaces {
		c.namespaces[ns] = maps.Clone(inner)
	}
	return c
}

// AddNamespace makes a namespace known, without services, and tells whether it was new.
func (s *State) AddNamespace(id string) (added bool) {
	if s.namespaces[id] != nil {
		return false
	}
	s.namespaces[id] = make(map[string]*Service)
	return true
}

// Known tells whether a service was ever registered in a namespace.
func (s *State) Known(id string) bool { return s.namespaces[id] != nil }

// Size is the number of services in a namespace.
func (s *State) Size(id string) int { return len(s.namespaces[id]) }

// DropNamespace forgets a namespace that has no services; false when it has some.
func (s *State) DropNamespace(id string) bool {
	if len(s.namespaces[id]) > 0 {
		return false
	}
	delete(s.namespaces, id)
	return true
}
