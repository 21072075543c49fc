package health

import (
	"math"
	"slices"
	"sync"
	"time"

	"github.com/rollcall-io/rollcall/registry"
)

const (
	// maxSilent bounds the list of silent leases in an answer; those that find no room start
	// fresh at a take-over.
	maxSilent = registry.MaxSilentLeases
	// maxQuiet bounds the leases that a scan notes as candidates for the list.
	maxQuiet = 4 * maxSilent
	// silentEvery is how often the list is sent to each node at most: a little less than
	// notedEvery, so that no empty batch comes just too early for it.
	silentEvery = 400 * time.Millisecond
)

// silentNotes is what this node knows of silent leases while another leads: the latest
// list of a leader, less those of which it knows a later beat.
type silentNotes struct {
	mu     sync.Mutex
	term   uint64
	at     time.Duration
	leases map[uint32]registry.SilentLease
}

// set replaces the notes by a list of a term's leader that came at time now.
func (n *silentNotes) set(term uint64, list []registry.SilentLease, now time.Duration) {
	leases := make(map[uint32]registry.SilentLease, len(list))
	for _, l := range list {
		leases[l.Number] = l
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.term, n.at, n.leases = term, now, leases
}

// any tells whether there are notes.
func (n *silentNotes) any() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.leases) > 0
}

// forget notes that leases were renewed. They stay in the notes as such until the next
// list: another node's notes may say otherwise.
func (n *silentNotes) forget(refs ...registry.LeaseRef) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, ref := range refs {
		n.forgetLocked(ref)
	}
}

// forgetRenewed is forget for those of refs whose verdict says that they were renewed.
func (n *silentNotes) forgetRenewed(refs []registry.LeaseRef, verdicts []registry.Verdict) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.leases) == 0 {
		return
	}
	for i, ref := range refs {
		if verdicts[i] == registry.BeatRenewed {
			n.forgetLocked(ref)
		}
	}
}

func (n *silentNotes) forgetLocked(ref registry.LeaseRef) {
	if l, noted := n.leases[ref.Number]; noted && l.Grant == ref.Grant {
		n.leases[ref.Number] = registry.SilentLease{LeaseRef: ref}
	}
}

// list is what the notes say at time now.
func (n *silentNotes) list(now time.Duration) registry.SilentNotes {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.leases == nil {
		return registry.SilentNotes{Age: math.MaxUint32} // no list ever came
	}
	s := registry.SilentNotes{Term: n.term, Age: milliseconds(now - n.at), Leases: make([]registry.SilentLease, 0, len(n.leases))}
	for _, l := range n.leases {
		s.Leases = append(s.Leases, l)
	}
	return s
}

// Silent is what this node knows of silent leases, for another that takes over: from the
// last scan while it leads, or believes so, and else from the lists of leaders. It does not
// block.
func (k *Keeper) Silent() registry.SilentNotes {
	if l := k.lead.Load(); l != nil {
		list, at := l.silent()
		return registry.SilentNotes{Term: l.term, Age: milliseconds(k.opts.Now() - at), Leases: list}
	}
	return k.notes.list(k.opts.Now())
}

// Renewed is told by the leader of leases that this node may note as silent and that are
// not. It does not block.
func (k *Keeper) Renewed(refs []registry.LeaseRef) { k.notes.forget(refs...) }

// firstLook notes who is silent before the first scan is due: a term may end sooner.
func (l *lead) firstLook() {
	var f findings
	l.table.scan(l.table.leaseTime(), &f)
	l.note(&f)
}

// note keeps the leases that a scan found to be listed, those first that were silent
// before.
func (l *lead) note(f *findings) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.quiet, l.quietAt, l.quietNow = slices.Concat(f.quiet, f.fresh), f.at, l.opts.Now()
}

// silent lists the silent leases, and tells as of when: now, unless the next scan is
// overdue. Then the process stood still, and ages end there.
func (l *lead) silent() (list []registry.SilentLease, at time.Duration) {
	l.mu.Lock()
	quiet, last, lastNow := l.quiet, l.quietAt, l.quietNow
	l.mu.Unlock()
	now := min(l.table.leaseTime(), last+l.opts.ScanInterval+maxLate)
	return l.table.silence(quiet, now), lastNow + now - last
}

// silentFor is the list for a node, and whether it is due.
func (l *lead) silentFor(node string) ([]registry.SilentLease, bool) {
	if !l.tell(node, l.opts.Now()) {
		return nil, false
	}
	list, _ := l.silent()
	return list, true
}

// tell tells whether the list is due for a node, and that it gets it now.
func (l *lead) tell(node string, now time.Duration) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	last, known := l.told[node]
	if known && now-last < silentEvery || !known && len(l.told) >= maxNodes {
		return false
	}
	l.told[node] = now
	return true
}

// maxNodes bounds the nodes that lists are kept for.
const maxNodes = 64

// silence lists those of numbers that are silent at lease time now, or had no beat since
// this leader took over: should the term end before an interval is over, the next leader
// must not start all of them afresh again. What is listed is marked, so that the other
// nodes are told when it is renewed.
func (t *table) silence(numbers []uint32, now time.Duration) []registry.SilentLease {
	if len(numbers) == 0 {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	list := make([]registry.SilentLease, 0, min(len(numbers), maxSilent))
	for _, number := range numbers {
		if len(list) == maxSilent {
			break
		}
		s := t.slot(number)
		word := s.word.Load()
		if word&flagUsed == 0 {
			continue
		}
		s.word.Store(word | flagListed) // before seen is read: a beat stores that first
		age, given := s.age(now), time.Duration(0)
		if now-age <= t.start {
			given = t.given(s, number) + now - t.start
		} else if age <= silenceOf(word) {
			s.word.Store(word)
			continue
		}
		list = append(list, registry.SilentLease{
			LeaseRef: s.ref(number), Age: max(milliseconds(age), 1), Given: milliseconds(min(given, age)),
		})
	}
	return list
}

func milliseconds(d time.Duration) uint32 {
	return uint32(min(max(d.Milliseconds(), 0), math.MaxUint32))
}
