package fsm

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/bits"

	"github.com/rollcall-io/rollcall/registry"
)

// sum adds up 128-bit hashes of records, modulo 2^128: it does not depend on their
// order, and a record that changes costs one subtraction and one addition.
type sum struct{ hi, lo uint64 }

// hashOf is the first half of the SHA-256 of a record's bytes.
func hashOf(record []byte) sum {
	h := sha256.Sum256(record)
	return sum{binary.BigEndian.Uint64(h[:8]), binary.BigEndian.Uint64(h[8:16])}
}

func (s *sum) add(o sum) {
	var carry uint64
	s.lo, carry = bits.Add64(s.lo, o.lo, 0)
	s.hi, _ = bits.Add64(s.hi, o.hi, carry)
}

func (s *sum) sub(o sum) {
	var borrow uint64
	s.lo, borrow = bits.Sub64(s.lo, o.lo, 0)
	s.hi, _ = bits.Sub64(s.hi, o.hi, borrow)
}

func hex(d registry.Digest) string { return fmt.Sprintf("%x", d[:]) }

func (s sum) digest() (d registry.Digest) {
	binary.BigEndian.PutUint64(d[:8], s.hi)
	binary.BigEndian.PutUint64(d[8:], s.lo)
	return d
}

// ringSize is how many entries back a DigestCheck can look.
const ringSize = 4096

// ring keeps the digest after each of the last entries.
type ring struct {
	entries [ringSize]struct {
		index uint64
		sum   sum
	}
	next int

	// divergedAt is the index at which a DigestCheck found another digest, 0 for never.
	// It belongs to this node and is no part of the state.
	divergedAt uint64
}

func (r *ring) add(index uint64, s sum) {
	r.entries[r.next].index, r.entries[r.next].sum = index, s
	r.next = (r.next + 1) % ringSize
}

func (r *ring) at(index uint64) (s sum, found bool) {
	for i := range r.entries {
		if r.entries[i].index == index {
			return r.entries[i].sum, index != 0
		}
	}
	return sum{}, false
}

// Digest is the digest over all replicated state and the index that it belongs to.
func (f *FSM) Digest() (index uint64, d registry.Digest) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.state.index, f.state.sum.digest()
}

// Diverged tells whether a digest check found this node's state to differ from the
// leader's, and at which index. Only a restored snapshot ends it.
func (f *FSM) Diverged() (index uint64, yes bool) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.ring.divergedAt, f.ring.divergedAt != 0
}

// digestCheck compares the leader's digest with this node's own. It never touches state,
// and its result is the same on every node.
func (t *tx) digestCheck(c registry.DigestCheck) registry.Result {
	own, found := t.f.ring.at(c.At)
	switch {
	case !found:
		t.f.metrics.digestUnknown.Inc()
	case own.digest() == c.Digest:
		t.f.metrics.digestEqual.Inc()
	default:
		if t.f.ring.divergedAt == 0 {
			t.f.ring.divergedAt = c.At
		}
		t.f.metrics.digestDiffers.Inc()
		t.f.log.Error("state differs from the leader's: remove this node's data and let it join again",
			"index", c.At, "own", hex(own.digest()), "leader", hex(c.Digest))
	}
	return t.done(false)
}
