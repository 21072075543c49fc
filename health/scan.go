package health

import (
	"time"

	"github.com/rollcall-io/rollcall/registry"
)

// maxDue bounds what one scan hands on of each sort; the next scan finds the rest.
const maxDue = 32 * batchItems

// maxFuture is how far ahead of a scan a beat may be stamped. Beats that come between a
// pause and its discovery are stamped with the pause in them; they are brought back.
const maxFuture = time.Second

// findings is what one scan saw. It is reused from scan to scan.
type findings struct {
	// noEvict keeps the scan from finding evictions: what is due for one is flipped then.
	noEvict bool
	// at is the lease time that everything was judged by.
	at time.Duration
	// flips and evicts are the numbers of leases that are due, at most maxDue each.
	flips  []uint32
	evicts []uint32
	// doomed counts the leases that would be evicted within one of their beat timeouts if
	// nobody beat again.
	doomed int
	// silent counts the silent leases, see silenceOf. quiet lists the first maxQuiet of
	// those that are silent, or may be by the time that somebody asks, or were taken over
	// with an age. fresh is a sample of the others without a beat since the take-over.
	silent int
	quiet  []uint32
	fresh  []uint32
	// unseen counts what fresh is a sample of; draw is the state of its random numbers.
	unseen uint32
	draw   uint32
	// held counts the leases that the storm guard holds.
	held int
}

func (f *findings) reset(at time.Duration) {
	f.at, f.doomed, f.silent, f.held, f.unseen = at, 0, 0, 0, 0
	f.flips, f.evicts, f.quiet, f.fresh = f.flips[:0], f.evicts[:0], f.quiet[:0], f.fresh[:0]
}

// sample notes a lease without a beat since the take-over, as one of maxSilent that are
// drawn by lot when there are more. Were the first ones taken, a dead instance with a
// high number would never be noted by leaders that don't live for an interval.
func (f *findings) sample(number uint32) {
	f.unseen++
	if len(f.fresh) < maxSilent {
		f.fresh = append(f.fresh, number)
		return
	}
	f.draw = f.draw*1664525 + 1013904223
	if i := uint64(f.draw) * uint64(f.unseen) >> 32; i < maxSilent {
		f.fresh[i] = number
	}
}

// scan judges every lease at lease time now. It changes nothing.
func (t *table) scan(now time.Duration, f *findings) {
	f.reset(now)
	left := t.top.Load()
	for i, p := range *t.pages.Load() {
		n := min(left, pageSize)
		left -= n
		first := uint32(i) * pageSize
		for j := range p[:n] {
			s := &p[j]
			word := s.word.Load()
			if word&flagUsed == 0 {
				continue
			}
			seen := s.seen.Load()
			age := now - time.Duration(seen)
			if age > intervalOf(word)-intervalUnit || seen <= int64(t.start) {
				t.judge(f, first+uint32(j), s, word, age)
			} else if age < -maxFuture {
				s.seen.CompareAndSwap(seen, int64(now))
			}
		}
	}
}

func (t *table) judge(f *findings, number uint32, s *slot, word uint32, age time.Duration) {
	switch unseen := f.at - age; {
	case age > intervalOf(word) || unseen < t.start:
		if len(f.quiet) < maxQuiet {
			f.quiet = append(f.quiet, number)
		}
	case unseen == t.start:
		f.sample(number)
	}
	if age > silenceOf(word) {
		f.silent++
		if age > s.deleteTimeout()-s.beatTimeout() {
			f.doomed++
		}
	}
	if word&flagHeld != 0 {
		f.held++
	}
	switch {
	case word&flagEvicting != 0:
	case !f.noEvict && t.evictable(s, number, word, age, f.at):
		if len(f.evicts) < maxDue {
			f.evicts = append(f.evicts, number)
		}
	case t.flippable(s, number, word, age, f.at):
		if len(f.flips) < maxDue {
			f.flips = append(f.flips, number)
		}
	}
}

// evictable tells whether a lease of that age is to be evicted at lease time now. A
// lease that the storm guard holds has one more delete timeout.
func (t *table) evictable(s *slot, number, word uint32, age, now time.Duration) bool {
	timeout := s.deleteTimeout()
	if word&flagHeld != 0 {
		timeout *= 2
	}
	return age > timeout && t.graced(s, number, word, age, now)
}

// flippable tells whether a lease of that age is to become unhealthy at lease time now.
func (t *table) flippable(s *slot, number, word uint32, age, now time.Duration) bool {
	return word&(flagHealthy|flagFlipping) == flagHealthy && age > s.beatTimeout() && t.graced(s, number, word, age, now)
}

// graced tells whether a lease has had its grace: it was renewed in this term, or leaders
// that took it over silent, this one included, have given it that time together. So each of
// its two timers starts at the smaller of its age and its timeout less what is owed still.
func (t *table) graced(s *slot, number, word uint32, age, now time.Duration) bool {
	if now-age > t.start {
		return true
	}
	return now-t.start > max(graceOf(word)-t.given(s, number), leastGrace)
}

// claimFlips marks those leases that are still due at the lease time of the scan that
// found them, and returns what to propose. It goes by the scan's time and not by the
// present one: a pause in between must not make anybody older.
func (t *table) claimFlips(numbers []uint32, at time.Duration) (items []registry.HealthItem, seen []int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, number := range numbers {
		s := t.slot(number)
		word := s.word.Load()
		if word&flagUsed == 0 || word&flagEvicting != 0 || !t.flippable(s, number, word, s.age(at), at) {
			continue
		}
		s.word.Store(word | flagFlipping)
		last := s.seen.Load()
		if !t.flippable(s, number, word, at-time.Duration(last), at) {
			s.word.Store(word)
			continue
		}
		ref := s.ref(number)
		items = append(items, registry.HealthItem{Lease: ref.Number, Grant: ref.Grant})
		seen = append(seen, last)
	}
	return items, seen
}

// claimEvicts is claimFlips for evictions. A lease whose flip is in flight may be
// claimed too: the flip comes first in the log.
func (t *table) claimEvicts(numbers []uint32, at time.Duration) (items []registry.LeaseRef) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, number := range numbers {
		s := t.slot(number)
		word := s.word.Load()
		if word&flagUsed == 0 || word&flagEvicting != 0 || !t.evictable(s, number, word, s.age(at), at) {
			continue
		}
		s.word.Store(word | flagEvicting)
		if !t.evictable(s, number, word, s.age(at), at) {
			s.word.Store(word)
			continue
		}
		items = append(items, s.ref(number))
	}
	return items
}

// settleFlips ends claims whose outcome is known and applied. A lease that was renewed
// after its claim and is unhealthy now is to recover.
func (t *table) settleFlips(items []registry.HealthItem, seen []int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i, item := range items {
		s := t.slot(item.Lease)
		if !s.holds(item.Grant) {
			continue
		}
		word := s.word.Load() &^ flagFlipping
		s.word.Store(word)
		if s.seen.Load() != seen[i] {
			t.wantRecoveryLocked(registry.LeaseRef{Number: item.Lease, Grant: item.Grant})
		}
	}
}

// settle ends claims whose outcome is known and applied.
func (t *table) settle(refs []registry.LeaseRef, flag uint32) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, ref := range refs {
		if s := t.slot(ref.Number); s.holds(ref.Grant) {
			s.word.Store(s.word.Load() &^ flag)
		}
	}
}

// hold gives leases that are due for eviction one more delete timeout, once. It returns
// how many it held, and those that have had theirs, in the space of numbers.
func (t *table) hold(numbers []uint32) (held int, spent []uint32) {
	t.mu.Lock()
	defer t.mu.Unlock()
	spent = numbers[:0]
	for _, number := range numbers {
		s := t.slot(number)
		word := s.word.Load()
		switch {
		case word&flagUsed == 0 || word&flagEvicting != 0:
		case word&flagHeld != 0:
			spent = append(spent, number)
		default:
			s.word.Store(word | flagHeld)
			held++
		}
	}
	return held, spent
}
