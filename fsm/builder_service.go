package fsm

import (
	"fmt"
	"strings"

	"github.com/rollcall-io/rollcall/registry"
)

// begin starts a service, whose instances follow.
func (b *builder) begin(s *registry.Service) error {
	if !b.state.reg.Known(s.Key.Namespace) {
		return fmt.Errorf("service %s is in a namespace that is not known", s.Key)
	}
	if b.state.reg.Service(s.Key) != nil {
		return fmt.Errorf("service %s is there twice", s.Key)
	}
	s.Key = b.ownKey(s.Key)
	s.Metadata = b.texts.metadata(s.Metadata)
	s.Selector.Type = b.texts.get(s.Selector.Type)
	s.Selector.Expression = b.texts.get(s.Selector.Expression)
	for i := range s.Clusters {
		s.Clusters[i] = b.texts.cluster(s.Clusters[i])
	}
	b.service = s
	return nil
}

func (b *builder) ownKey(k registry.ServiceKey) registry.ServiceKey {
	return registry.ServiceKey{Namespace: b.texts.get(k.Namespace), Grouped: strings.Clone(k.Grouped)}
}

// instance adds an instance to the service that was begun.
func (b *builder) instance(k registry.ServiceKey, in *registry.Instance) error {
	if b.service == nil || b.service.Key != k {
		return fmt.Errorf("instance of %s does not follow its service", k)
	}
	timeouts, _, err := registry.ParseTimeouts(in.Metadata)
	if err != nil {
		return fmt.Errorf("instance of %s: %w", k, err)
	}
	if in.Ephemeral != (in.Lease != 0) {
		return fmt.Errorf("instance %s: ephemeral is %t, lease is %d", in.Address.In(k), in.Ephemeral, in.Lease)
	}
	in.Timeouts = timeouts
	in.Spec = b.texts.spec(&in.Spec)
	if in.Lease != 0 {
		b.leases = append(b.leases, leaseSlot{b.service.Key, in})
	}
	b.instances = append(b.instances, in)
	return nil
}
