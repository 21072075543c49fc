package health

import (
	"sync/atomic"
	"time"

	"github.com/rollcall-io/rollcall/registry"
)

// slot is the leader's knowledge of one lease: 32 bytes, two to a cache line, so that a
// beat touches one line and a scan streams.
//
// Any goroutine may store seen; all other fields are written under the table's lock
// and read without it. Nobody who reads a slot while it is being granted anew acts on
// what he read: a beat then refreshes a lease that is fresh anyway, and whoever means to
// propose something claims the lease under the lock first.
type slot struct {
	// seen is the lease time of the last beat, or of the grant.
	seen  atomic.Int64
	index atomic.Uint64
	seq   atomic.Uint32
	// beat and expire are the timeouts in milliseconds.
	beat   atomic.Uint32
	expire atomic.Uint32
	// word holds the flags and, above them, the interval in units.
	word atomic.Uint32
}

// Flags of a slot's word.
const (
	flagUsed uint32 = 1 << iota
	flagHealthy
	// flagFlipping and flagEvicting: a proposal that would do that is in flight.
	flagFlipping
	flagEvicting
	// flagRecovering: a recovery is queued or in flight.
	flagRecovering
	// flagHeld: the storm guard gave this lease one more delete timeout.
	flagHeld
	// flagListed: other nodes may note this lease as silent, and are told when it is not.
	flagListed

	flagBits = 8
)

// intervalUnit is the grain in which a slot keeps its interval: 24 bits of it reach
// beyond registry.MaxTimeout. The interval is rounded up, which only ever grants time.
const intervalUnit = 128 * time.Millisecond

// packInterval is the part of a word that tells the interval. It never exceeds the
// timeouts by a unit, so that a lease younger than its interval less one unit is never due.
func packInterval(t registry.Timeouts) uint32 {
	ms := min(t.Interval, t.Beat, t.Delete)
	unit := uint32(intervalUnit / time.Millisecond)
	return (ms + unit - 1) / unit << flagBits
}

func intervalOf(word uint32) time.Duration { return time.Duration(word>>flagBits) * intervalUnit }

// silenceOf is the age at which a lease counts as silent: 1.5 intervals, or half a second
// over one interval when that is less. With 1.5 alone, silence at the default interval
// would hardly be noticed in the term of a leader that lives for ten seconds, and the
// dead would start fresh with the next, again and again.
func silenceOf(word uint32) time.Duration {
	interval := intervalOf(word)
	return interval + min(interval/2, maxSilenceSlack)
}

const maxSilenceSlack = 500 * time.Millisecond

// graceOf is the time that leaders give a lease that they took over silent, whatever its
// age, once in a silence: enough for two beats of a living instance.
func graceOf(word uint32) time.Duration { return intervalOf(word) + 2*time.Second }

func (s *slot) ref(number uint32) registry.LeaseRef {
	return registry.LeaseRef{Number: number, Grant: registry.Position{Index: s.index.Load(), Seq: s.seq.Load()}}
}

func (s *slot) holds(grant registry.Position) bool {
	return s.index.Load() == grant.Index && s.seq.Load() == grant.Seq
}

func (s *slot) beatTimeout() time.Duration { return time.Duration(s.beat.Load()) * time.Millisecond }
func (s *slot) deleteTimeout() time.Duration {
	return time.Duration(s.expire.Load()) * time.Millisecond
}

func (s *slot) age(now time.Duration) time.Duration { return now - time.Duration(s.seen.Load()) }
