package registry

import (
	"net/netip"
	"strings"
)

// Subscriber is a client that a node tells of a service's changes by UDP. Service,
// Clusters, Addr and Agent together identify it; it belongs to the node that it asked.
type Subscriber struct {
	Service ServiceKey
	// Clusters is the list as the client wrote it, commas and all: it is echoed.
	Clusters string
	// Addr is where the client listens, never an IPv4 address inside IPv6.
	Addr netip.AddrPort
	// Agent is the client's name and version as it gave them, App what it calls itself.
	Agent string
	App   string
	// Grouped tells that the client calls services `group@@name`.
	Grouped bool
	// Named tells that the client named Addr: its query came from another address, so that
	// nothing shows yet that somebody wants to be told there.
	Named bool
	// MaxPacket is the longest datagram that the client reads, in bytes; 0 means all.
	MaxPacket int
}

// Compare orders subscribers by service, address, agent and clusters.
func (s Subscriber) Compare(o Subscriber) int {
	if c := s.Service.Compare(o.Service); c != 0 {
		return c
	}
	if c := s.Addr.Compare(o.Addr); c != 0 {
		return c
	}
	if c := strings.Compare(s.Agent, o.Agent); c != 0 {
		return c
	}
	return strings.Compare(s.Clusters, o.Clusters)
}

// SubscriberQuery asks for the subscribers of one namespace whose group and service
// name contain these texts (Nacos 1.4.7, getSubscribersFuzzy).
type SubscriberQuery struct {
	Namespace string
	Group     string
	Name      string
}

// Matches tells whether a service is among those that the query asks for.
func (q SubscriberQuery) Matches(k ServiceKey) bool {
	return k.Namespace == q.Namespace && strings.Contains(k.Group(), q.Group) && strings.Contains(k.Name(), q.Name)
}

// PushCounts are how UDP pushes went since the start or the last reset.
type PushCounts struct {
	// Total are the pushes sent, Failed those that were not acknowledged in time twice.
	Total  uint64
	Failed uint64
	// Waiting describes some of the pushes whose acknowledgement is awaited.
	Waiting []string
}
