package registry

import (
	"slices"
	"strings"
)

// Pair is one metadata entry.
type Pair struct {
	Key   string
	Value string
}

// Metadata is a set of key-value pairs, sorted by key without duplicates. It is a
// slice rather than a map so that its order is the same on every node and a small
// set costs little memory. It is immutable once built by NewMetadata or Merge.
type Metadata []Pair

// NewMetadata sorts pairs into Metadata; of a repeated key the last value wins. It
// takes ownership of pairs.
func NewMetadata(pairs []Pair) Metadata {
	if len(pairs) == 0 {
		return nil
	}
	slices.SortStableFunc(pairs, func(a, b Pair) int { return strings.Compare(a.Key, b.Key) })
	kept := pairs[:1]
	for _, p := range pairs[1:] {
		if last := &kept[len(kept)-1]; last.Key == p.Key {
			last.Value = p.Value
		} else {
			kept = append(kept, p)
		}
	}
	return Metadata(kept)
}

// Get is the value of key, and whether it is there.
func (m Metadata) Get(key string) (string, bool) {
	i, found := slices.BinarySearchFunc(m, key, func(p Pair, k string) int { return strings.Compare(p.Key, k) })
	if !found {
		return "", false
	}
	return m[i].Value, true
}

// Merge is m with the pairs of o added or replaced.
func (m Metadata) Merge(o Metadata) Metadata {
	if len(o) == 0 {
		return m
	}
	return NewMetadata(append(slices.Clone([]Pair(m)), o...))
}

// Without is m less the keys of o; the values of o do not count.
func (m Metadata) Without(o Metadata) Metadata {
	kept := make([]Pair, 0, len(m))
	for _, p := range m {
		if _, drop := o.Get(p.Key); !drop {
			kept = append(kept, p)
		}
	}
	return NewMetadata(kept)
}

// Equal tells whether both hold the same pairs.
func (m Metadata) Equal(o Metadata) bool { return slices.Equal(m, o) }

// Size is the number of bytes in keys and values, what MaxMetadata bounds.
func (m Metadata) Size() int {
	n := 0
	for _, p := range m {
		n += len(p.Key) + len(p.Value)
	}
	return n
}
