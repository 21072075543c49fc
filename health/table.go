package health

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/rollcall-io/rollcall/registry"
)

// pageSize is the number of slots in a page. A table grows by pages, so growth never
// moves a slot and readers need no lock.
const pageSize = 1 << 16

type page [pageSize]slot

// table holds the leader's leases of one term, in dense pages indexed by lease number.
// It observes the replicated leases, takes beats and answers which leases are due.
//
// Beats and scans take no lock; everything that changes a slot's flags or grant does.
// The order that closes the race between them: a beat stores seen, then reads the
// flags; whoever claims a lease for a proposal sets the flag, then reads seen again. One
// of the two sees the other.
type table struct {
	now func() time.Duration
	// shift is what pauses have taken out of lease time: lease time = now - shift.
	shift atomic.Int64
	// start is the lease time at which the term's table was made.
	start time.Duration
	// restored are the leases that were known when the table was made. It never changes.
	restored restored
	// making is set while the table is being made: leases start with the age they had.
	making bool
	// recover is told, under mu, of each lease whose recovery is due; it must not block.
	recover func(registry.LeaseRef)
	// renewed is told, under mu, of each lease that was renewed while other nodes may note
	// it as silent; it must not block. Nil when there is nobody to tell.
	renewed func(registry.LeaseRef)

	pages atomic.Pointer[[]*page]
	// top is one more than the highest number ever granted.
	top       atomic.Uint32
	leases    atomic.Int64
	unhealthy atomic.Int64

	mu sync.Mutex
}

// newTable makes an empty table that starts now. Leases that are granted before it is
// complete start with the age that known gives them, all others afresh.
func newTable(now func() time.Duration, known restored, recover func(registry.LeaseRef)) *table {
	t := &table{now: now, start: now(), restored: known, making: true, recover: recover}
	t.pages.Store(&[]*page{})
	return t
}

// leaseTime is the time that leases are measured in: it stands still in pauses.
func (t *table) leaseTime() time.Duration { return t.now() - time.Duration(t.shift.Load()) }

// slot is the slot of a number, nil when no lease ever had it.
func (t *table) slot(number uint32) *slot {
	pages := *t.pages.Load()
	if i := int(number / pageSize); i < len(pages) {
		return &pages[i][number%pageSize]
	}
	return nil
}

// beat renews a lease at lease time now: one atomic store. It takes no lock unless the
// instance is unhealthy.
func (t *table) beat(ref registry.LeaseRef, now time.Duration) registry.Verdict {
	s := t.slot(ref.Number)
	if s == nil || !s.holds(ref.Grant) {
		return registry.BeatStale
	}
	s.seen.Store(int64(now))
	word := s.word.Load()
	if word&flagListed != 0 {
		t.unlist(ref)
	}
	switch {
	case word&flagUsed == 0:
		return registry.BeatStale
	case word&flagEvicting != 0:
		return registry.BeatPending
	case word&(flagHealthy|flagRecovering) == 0:
		t.wantRecovery(ref)
	}
	return registry.BeatRenewed
}

// renew is a beat that succeeds only if nothing about the lease is in flight or wrong:
// what a re-registration needs in order to do without a log entry.
func (t *table) renew(ref registry.LeaseRef, now time.Duration) bool {
	s := t.slot(ref.Number)
	if s == nil || !s.holds(ref.Grant) {
		return false
	}
	s.seen.Store(int64(now))
	word := s.word.Load()
	if word&flagListed != 0 {
		t.unlist(ref)
	}
	// Of a lease that others note as silent an entry in the log is the better news.
	const all = flagUsed | flagHealthy | flagFlipping | flagEvicting | flagListed
	return word&all == flagUsed|flagHealthy
}

// unlist has the other nodes told, once, that a lease is silent no more.
func (t *table) unlist(ref registry.LeaseRef) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.slot(ref.Number)
	word := s.word.Load()
	if !s.holds(ref.Grant) || word&flagListed == 0 {
		return
	}
	if t.renewed != nil {
		t.renewed(ref) // first: who sees no mark may rely on the others being told
	}
	s.word.Store(word &^ flagListed)
}

// wantRecovery queues the recovery of an unhealthy lease, once.
func (t *table) wantRecovery(ref registry.LeaseRef) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.wantRecoveryLocked(ref)
}

func (t *table) wantRecoveryLocked(ref registry.LeaseRef) {
	s := t.slot(ref.Number)
	word := s.word.Load()
	if !s.holds(ref.Grant) || word&(flagUsed|flagHealthy|flagEvicting|flagRecovering) != flagUsed {
		return
	}
	s.word.Store(word | flagRecovering)
	t.recover(ref)
}

// given is how much grace leaders before this one gave a lease.
func (t *table) given(s *slot, number uint32) time.Duration {
	if was, known := t.restored.leases[number]; known && s.holds(was.grant) {
		return was.given
	}
	return 0
}

// LeaseGranted starts a lease. Until the table is complete it may start with an age.
func (t *table) LeaseGranted(l registry.Lease) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.ensure(l.Number)
	t.count(s.word.Load(), -1)
	seen := t.leaseTime()
	word := flagUsed | packInterval(l.Timeouts)
	if t.making {
		was, known := t.restored.of(l.LeaseRef)
		if seen = t.start - was.age; known {
			word |= flagListed
		}
	}
	if l.Healthy {
		word |= flagHealthy
	}
	// Unused while it is half written, so that no scan judges a mixture.
	s.word.Store(0)
	s.index.Store(l.Grant.Index)
	s.seq.Store(l.Grant.Seq)
	s.beat.Store(l.Timeouts.Beat)
	s.expire.Store(l.Timeouts.Delete)
	s.seen.Store(int64(seen))
	s.word.Store(word)
	t.count(word, +1)
}

// LeaseFlipped records the health that the state shows.
func (t *table) LeaseFlipped(ref registry.LeaseRef, healthy bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.slot(ref.Number)
	if s == nil || !s.holds(ref.Grant) || s.word.Load()&flagUsed == 0 {
		return
	}
	word := s.word.Load()
	next := word &^ flagHealthy
	if healthy {
		next = word&^(flagRecovering|flagHeld) | flagHealthy
	}
	t.count(word, -1)
	s.word.Store(next)
	t.count(next, +1)
}

// LeaseReleased frees a slot.
func (t *table) LeaseReleased(ref registry.LeaseRef) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.slot(ref.Number)
	if s == nil || !s.holds(ref.Grant) {
		return
	}
	t.count(s.word.Load(), -1)
	s.word.Store(0)
}

// LeasesReset frees all slots. Those that are granted after it start fresh.
func (t *table) LeasesReset() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.making = false
	for _, p := range *t.pages.Load() {
		for i := range p {
			p[i].word.Store(0)
		}
	}
	t.leases.Store(0)
	t.unhealthy.Store(0)
}

// complete ends the making of the table: leases granted from now on start fresh.
func (t *table) complete() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.making = false
}

// freshen starts every lease anew at lease time now, as a take-over does.
func (t *table) freshen() {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := int64(t.leaseTime())
	for _, p := range *t.pages.Load() {
		for i := range p {
			p[i].seen.Store(now)
		}
	}
}

// ensure is the slot of a number, with its page made when missing.
func (t *table) ensure(number uint32) *slot {
	pages := *t.pages.Load()
	need := int(number/pageSize) + 1
	if need > len(pages) {
		grown := make([]*page, need)
		copy(grown, pages)
		for i := len(pages); i < need; i++ {
			grown[i] = new(page)
		}
		t.pages.Store(&grown)
		pages = grown
	}
	if number >= t.top.Load() {
		t.top.Store(number + 1)
	}
	return &pages[number/pageSize][number%pageSize]
}

func (t *table) count(word uint32, by int64) {
	if word&flagUsed == 0 {
		return
	}
	t.leases.Add(by)
	if word&flagHealthy == 0 {
		t.unhealthy.Add(by)
	}
}
