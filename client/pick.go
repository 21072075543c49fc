package client

import (
	"math"
	"math/rand/v2"
	"slices"
)

// Pick chooses a healthy instance at random by weight, nil when there is none. Weights
// count relative to one another, fractions too: 0.5 beside 1 gets a third. It takes time
// by the logarithm of the number of instances and allocates nothing.
func (s *Snapshot) Pick() *Instance { return s.healthy.pick() }

// PickNear is Pick among the healthy instances of a cluster, and among all when it has
// none, or when the name is empty.
func (s *Snapshot) PickNear(cluster string) *Instance { return s.near(cluster).pick() }

// Next goes round the healthy instances, whatever their weight; nil when there is none.
// All callers of one service share the round.
func (s *Snapshot) Next() *Instance { return s.healthy.next() }

// NextNear is Next among the instances of a cluster, and among all when it has none.
func (s *Snapshot) NextNear(cluster string) *Instance { return s.near(cluster).next() }

// PickByKey chooses by a text, a user's name for example: the same instance every time
// and in every process, in proportion to the weights over many keys. When an instance
// comes or leaves, only the keys that go to it or came from it move. It takes time by the
// number of instances, about 10 ns each.
func (s *Snapshot) PickByKey(key string) *Instance { return s.healthy.byKey(key) }

// PickByKeyNear is PickByKey among the instances of a cluster, and among all when it has
// none.
func (s *Snapshot) PickByKeyNear(cluster, key string) *Instance { return s.near(cluster).byKey(key) }

func (s *Snapshot) near(cluster string) *pool {
	if p := s.clusters[cluster]; p != nil {
		return p
	}
	return &s.healthy
}

func (p *pool) pick() *Instance {
	n := len(p.all)
	if n == 0 {
		return nil
	}
	// Below the sum: Float64 is below 1, but the product may be rounded up to it.
	at, _ := slices.BinarySearch(p.sums, math.Nextafter(rand.Float64()*p.sums[n-1], math.Inf(1)))
	return p.all[min(at, n-1)]
}

func (p *pool) next() *Instance {
	if len(p.all) == 0 {
		return nil
	}
	return p.all[p.turn.Add(1)%uint64(len(p.all))]
}

// byKey is rendezvous hashing with weights: each instance draws a number from the key and
// its own address, exponentially distributed by its weight, and the smallest one wins.
func (p *pool) byKey(key string) (best *Instance) {
	h, least := hashText(key), math.Inf(1)
	for _, i := range p.all {
		u := (float64(mix(h^i.hash)>>11) + 0.5) / (1 << 53) // between 0 and 1, neither of them
		if draw := -math.Log(u) / i.Weight; draw < least {
			best, least = i, draw
		}
	}
	return best
}

// hashText is FNV-1a: the same in every process, unlike the runtime's own hash.
func hashText(s string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * 1099511628211
	}
	return mix(h)
}

// mix spreads each bit over all (the finalizer of SplitMix64).
func mix(h uint64) uint64 {
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	return h ^ h>>31
}
