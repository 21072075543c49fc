package push

import (
	"net/netip"
	"time"
)

const (
	// strangerBurst is how many bytes are sent to a network none of whose addresses has
	// acknowledged anything, strangerRate how many more each second. A client behind a proxy
	// acknowledges within milliseconds; who was named by somebody else never does.
	strangerBurst = 512 << 10
	strangerRate  = 8 << 10
	// strangerRefill is how long a used up allowance takes to be whole again.
	strangerRefill = strangerBurst / strangerRate * time.Second
)

// strangers bound what is sent to addresses that are not those from which their subscribers
// asked: a client may name any address, and a few queries would make a node flood it. They
// are counted by network, so that a neighbour is no fresh start. The Pusher's lock guards
// them.
type strangers struct{ left map[netip.Prefix]*allowance }

// allowance is what may still be sent, in bytes, as of a time.
type allowance struct {
	bytes float64
	at    time.Time
}

func newStrangers() strangers { return strangers{make(map[netip.Prefix]*allowance)} }

// network is what counts as one stranger: 256 IPv4 addresses, or the network of one IPv6 host.
func network(ip netip.Addr) netip.Prefix {
	bits := 64
	if ip.Is4() {
		bits = 24
	}
	p, _ := ip.WithZone("").Prefix(bits) // fails for a wrong length alone
	return p
}

// allow takes a packet off what may be sent to the address.
func (s strangers) allow(ip netip.Addr, length int, now time.Time) bool {
	key := network(ip)
	a := s.left[key]
	if a == nil {
		a = &allowance{strangerBurst, now}
		s.left[key] = a
	}
	a.bytes = min(strangerBurst, a.bytes+max(0, now.Sub(a.at).Seconds())*strangerRate)
	a.at = now
	if a.bytes < float64(length) {
		return false
	}
	a.bytes -= float64(length)
	return true
}

// heard notes an acknowledgement: somebody there wants to hear of us.
func (s strangers) heard(ip netip.Addr) { delete(s.left, network(ip)) }

// sweep forgets those whose allowance is whole again.
func (s strangers) sweep(now time.Time) {
	for key, a := range s.left {
		if now.Sub(a.at) > strangerRefill {
			delete(s.left, key)
		}
	}
}
