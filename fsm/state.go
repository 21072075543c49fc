package fsm

import (
	"maps"
	"slices"
	"strings"

	"github.com/rollcall-io/rollcall/internal/wire"
	"github.com/rollcall-io/rollcall/registry"
)

// state is everything that is replicated. All of it stands in a snapshot and, save for
// index and term, in the digest.
type state struct {
	reg        *registry.State
	leases     leases
	tombs      tombstones
	namespaces map[string]registry.Namespace
	switches   registry.Switches
	accounts   *registry.Accounts // immutable
	globals    wire.Globals
	// empty holds the services without instances that were not made by hand; it follows
	// from reg.
	empty map[registry.ServiceKey]struct{}
	// sum is the sum of the hashes of all records, globalsHash the part of the globals.
	sum         sum
	globalsHash sum
	// index and term are those of the last entry applied, of whatever type.
	index uint64
	term  uint64
}

func newState() *state {
	s := &state{
		reg:        registry.NewState(),
		tombs:      newTombstones(),
		namespaces: make(map[string]registry.Namespace),
		switches:   registry.DefaultSwitches(),
		accounts:   new(registry.Accounts),
		globals:    wire.Globals{Level: 1},
		empty:      make(map[registry.ServiceKey]struct{}),
	}
	s.sum.add(hashOf(wire.AppendSwitches(nil, s.switches)))
	s.globalsHash = hashOf(wire.AppendGlobals(nil, s.globals))
	s.sum.add(s.globalsHash)
	return s
}

// publish puts a service that was edited into the double map.
func (s *state) publish(svc *registry.Service) {
	s.reg.Publish(svc)
	if svc.Len() == 0 && !svc.Manual {
		s.empty[svc.Key] = struct{}{}
	} else {
		delete(s.empty, svc.Key)
	}
}

// remove drops a service from the double map.
func (s *state) remove(k registry.ServiceKey) {
	s.reg.Delete(k)
	delete(s.empty, k)
}

// records are the namespaces' records, sorted by id.
func (s *state) records() []registry.Namespace {
	return slices.SortedFunc(maps.Values(s.namespaces), func(a, b registry.Namespace) int {
		return strings.Compare(a.ID, b.ID)
	})
}
