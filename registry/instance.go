package registry

import (
	"strconv"
	"strings"
)

// Spec is what a client says of an instance: a registration's content, before Apply
// gives it an id, a lease and positions.
type Spec struct {
	Address
	Ephemeral bool
	Enabled   bool
	Healthy   bool
	Weight    float64
	App       string
	Metadata  Metadata
}

// Instance is a registered instance. It is immutable once published.
type Instance struct {
	Spec

	// Timeouts follow from the metadata; they are parsed once, in Apply.
	Timeouts Timeouts
	// SnowflakeID is the number of an instance that asked for the snowflake
	// generator plus one, and 0 for the others, whose id is made of their key.
	SnowflakeID uint32
	// Lease is the number of the lease that keeps an ephemeral instance, 0 for a
	// persistent one. Grant is the position at which that lease was last granted.
	Lease uint32
	Grant Position
	// Generation is the position of the registration. A re-registration makes a new one.
	Generation Position
}

// ID is the instanceId on the wire: `ip#port#cluster#group@@name`, or the decimal
// number of a snowflake id (Nacos 1.4.7, "simple" and "snowflake" generators).
func (i *Instance) ID(service ServiceKey) string {
	if i.SnowflakeID > 0 {
		return strconv.FormatUint(uint64(i.SnowflakeID-1), 10)
	}
	return i.IP + "#" + strconv.Itoa(int(i.Port)) + "#" + i.Cluster + "#" + service.Grouped
}

// wantsSnowflake tells whether the metadata asks for a snowflake id.
func wantsSnowflake(m Metadata) bool {
	v, _ := m.Get(KeyIDGenerator)
	return strings.EqualFold(v, "snowflake")
}

// Equal tells whether two specs say the same.
func (s Spec) Equal(o Spec) bool {
	return s.Address == o.Address && s.Ephemeral == o.Ephemeral && s.Enabled == o.Enabled &&
		s.Healthy == o.Healthy && s.Weight == o.Weight && s.App == o.App && s.Metadata.Equal(o.Metadata)
}

// Limits of weights, on the wire and in the state.
const (
	MaxWeight = 10_000.0
	minWeight = 0.01
)

// ClampWeight is the weight as stored: above 10000 becomes 10000, between 0 and 0.01
// becomes 0.01, 0 stays 0 (Nacos, Service.onChange). Apply calls it, so that every
// node stores the same whatever the edge let through; what is no number becomes 0.
func ClampWeight(w float64) float64 {
	switch {
	case !(w > 0): // also NaN
		return 0
	case w < minWeight:
		return minWeight
	case w > MaxWeight:
		return MaxWeight
	}
	return w
}
