package wire

import (
	"fmt"
	"math"

	"github.com/rollcall-io/rollcall/internal/wire/peerpb"
	"github.com/rollcall-io/rollcall/registry"
)

// EncodeBeats writes a batch of beats. Leases travel as columns of numbers, so that a
// batch of thousands costs no message for each.
func EncodeBeats(b registry.BeatBatch) *peerpb.BeatsRequest {
	m := &peerpb.BeatsRequest{Node: b.Node, Applied: b.Applied}
	m.Lease, m.GrantIndex, m.GrantSeq = encodeRefs(len(b.Leases), func(i int) registry.LeaseRef { return b.Leases[i] })
	if len(b.Keys) > 0 {
		m.Keys = make([]*peerpb.Key, len(b.Keys))
	}
	for i, k := range b.Keys {
		m.Keys[i] = &peerpb.Key{
			Namespace: k.Service.Namespace, Grouped: k.Service.Grouped,
			Cluster: k.Cluster, Ip: k.IP, Port: uint32(k.Port),
		}
	}
	return m
}

// DecodeBeats reads a batch of beats; columns of different length are an error.
func DecodeBeats(m *peerpb.BeatsRequest) (registry.BeatBatch, error) {
	b := registry.BeatBatch{Node: m.Node, Applied: m.Applied}
	if err := sameLength("beats", len(m.Lease), len(m.GrantIndex), len(m.GrantSeq)); err != nil {
		return b, err
	}
	b.Leases = make([]registry.LeaseRef, len(m.Lease))
	for i, number := range m.Lease {
		b.Leases[i] = decodeRef(number, m.GrantIndex[i], m.GrantSeq[i])
	}
	b.Keys = make([]registry.InstanceKey, len(m.Keys))
	for i, k := range m.Keys {
		if k.Port > math.MaxUint16 {
			return b, fmt.Errorf("beat %d names port %d", i, k.Port)
		}
		b.Keys[i] = registry.InstanceKey{
			Service: registry.ServiceKey{Namespace: k.Namespace, Grouped: k.Grouped},
			Cluster: k.Cluster, IP: k.Ip, Port: uint16(k.Port),
		}
	}
	return b, nil
}

// EncodeBeatAnswer writes the leader's verdicts.
func EncodeBeatAnswer(a registry.BeatAnswer) *peerpb.BeatsResponse {
	m := &peerpb.BeatsResponse{
		Leases: encodeVerdicts(a.Leases), Keys: encodeVerdicts(a.Keys), HasSilent: a.HasSilent, Term: a.Term,
	}
	m.SilentLease, m.SilentGrantIndex, m.SilentGrantSeq = encodeSilentRefs(a.Silent)
	m.SilentAgeMs, m.SilentGivenMs = encodeAges(a.Silent)
	return m
}

// DecodeBeatAnswer reads the verdicts on a batch of so many leases and keys. An answer
// that does not fit the batch is an error.
func DecodeBeatAnswer(m *peerpb.BeatsResponse, leases, keys int) (registry.BeatAnswer, error) {
	a := registry.BeatAnswer{HasSilent: m.HasSilent, Term: m.Term}
	if len(m.Leases) != leases || len(m.Keys) != keys {
		return a, fmt.Errorf("answer holds %d and %d verdicts for %d and %d beats",
			len(m.Leases), len(m.Keys), leases, keys)
	}
	var err error
	a.Silent, err = decodeSilent(silentColumns{
		m.SilentLease, m.SilentGrantIndex, m.SilentGrantSeq, m.SilentAgeMs, m.SilentGivenMs,
	})
	if err != nil {
		return a, err
	}
	a.Leases, a.Keys = decodeVerdicts(m.Leases), decodeVerdicts(m.Keys)
	return a, nil
}

func encodeRefs(n int, ref func(int) registry.LeaseRef) (numbers []uint32, indexes []uint64, seqs []uint32) {
	if n == 0 {
		return nil, nil, nil
	}
	numbers, indexes, seqs = make([]uint32, n), make([]uint64, n), make([]uint32, n)
	for i := range n {
		r := ref(i)
		numbers[i], indexes[i], seqs[i] = r.Number, r.Grant.Index, r.Grant.Seq
	}
	return numbers, indexes, seqs
}

func decodeRef(number uint32, index uint64, seq uint32) registry.LeaseRef {
	return registry.LeaseRef{Number: number, Grant: registry.Position{Index: index, Seq: seq}}
}

func encodeVerdicts(verdicts []registry.Verdict) []byte {
	out := make([]byte, len(verdicts))
	for i, v := range verdicts {
		out[i] = byte(v)
	}
	return out
}

func decodeVerdicts(b []byte) []registry.Verdict {
	out := make([]registry.Verdict, len(b))
	for i, v := range b {
		out[i] = registry.Verdict(v)
	}
	return out
}

func sameLength(what string, first int, others ...int) error {
	for _, n := range others {
		if n != first {
			return fmt.Errorf("%s: columns of %d and %d", what, first, n)
		}
	}
	return nil
}
