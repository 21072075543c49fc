package wire

import (
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/rollcall-io/rollcall/internal/wire/peerpb"
	"github.com/rollcall-io/rollcall/registry"
)

// EncodeSilentNotes writes what a node knows of silent leases.
func EncodeSilentNotes(n registry.SilentNotes) ([]byte, error) {
	m := &peerpb.SilentNotes{Term: n.Term, AgeMs: n.Age}
	m.Lease, m.GrantIndex, m.GrantSeq = encodeSilentRefs(n.Leases)
	m.LeaseAgeMs, m.GivenMs = encodeAges(n.Leases)
	b, err := proto.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("encode silent leases: %w", err)
	}
	return b, nil
}

// DecodeSilentNotes reads what another node knows of silent leases. Columns of different
// length and lists above registry.MaxSilentLeases are errors.
func DecodeSilentNotes(b []byte) (registry.SilentNotes, error) {
	var m peerpb.SilentNotes
	if err := proto.Unmarshal(b, &m); err != nil {
		return registry.SilentNotes{}, fmt.Errorf("decode silent leases: %w", err)
	}
	n := registry.SilentNotes{Term: m.Term, Age: m.AgeMs}
	var err error
	n.Leases, err = decodeSilent(silentColumns{m.Lease, m.GrantIndex, m.GrantSeq, m.LeaseAgeMs, m.GivenMs})
	return n, err
}

// silentColumns is a list of silent leases as it travels.
type silentColumns struct {
	number []uint32
	index  []uint64
	seq    []uint32
	age    []uint32
	// given is empty from nodes that do not tell it.
	given []uint32
}

func decodeSilent(c silentColumns) ([]registry.SilentLease, error) {
	n := len(c.number)
	if n > registry.MaxSilentLeases {
		return nil, fmt.Errorf("%d silent leases, at most %d may be listed", n, registry.MaxSilentLeases)
	}
	if err := sameLength("silent leases", n, len(c.index), len(c.seq), len(c.age)); err != nil {
		return nil, err
	}
	if len(c.given) != 0 && len(c.given) != n {
		return nil, fmt.Errorf("silent leases: columns of %d and %d", n, len(c.given))
	}
	if n == 0 {
		return nil, nil
	}
	list := make([]registry.SilentLease, n)
	for i, number := range c.number {
		list[i] = registry.SilentLease{LeaseRef: decodeRef(number, c.index[i], c.seq[i]), Age: c.age[i]}
		if len(c.given) > 0 {
			list[i].Given = min(c.given[i], c.age[i])
		}
	}
	return list, nil
}

func encodeSilentRefs(list []registry.SilentLease) (numbers []uint32, indexes []uint64, seqs []uint32) {
	return encodeRefs(len(list), func(i int) registry.LeaseRef { return list[i].LeaseRef })
}

func encodeAges(list []registry.SilentLease) (ages, given []uint32) {
	if len(list) == 0 {
		return nil, nil
	}
	ages, given = make([]uint32, len(list)), make([]uint32, len(list))
	for i, s := range list {
		ages[i], given[i] = s.Age, s.Given
	}
	return ages, given
}
