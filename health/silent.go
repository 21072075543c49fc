package health

import (
	"math"
	"sync"
	"time"

	"github.com/rollcall-io/rollcall/registry"
)

const (
	// maxSilent bounds the list of silent leases in an answer to 64 KiB; those that find no
	// room start fresh at a take-over.
	maxSilent = 3000
	// maxQuiet bounds the leases that a scan notes as candidates for the list.
	maxQuiet = 4 * maxSilent
	// silentEvery is how often the list is sent to each node.
	silentEvery = time.Second
	// silentValid is how old a list may be at a take-over. In an older one too many may
	// have come back without this node's knowledge.
	silentValid = 10 * time.Second
	// silentGrowth bounds how much a list's ages grow until the take-over: the time for
	// which beats are still taken after the last answered batch, and one list interval.
	// Clients that were refused for longer must not look silent for it.
	silentGrowth = acceptWithoutLeader + silentEvery
)

// silentNotes is what this node knows of silent leases while another leads: the latest
// list of a leader.
type silentNotes struct {
	mu     sync.Mutex
	at     time.Duration
	leases map[uint32]registry.SilentLease
}

// set replaces the notes by a list that came at time now.
func (n *silentNotes) set(list []registry.SilentLease, now time.Duration) {
	leases := make(map[uint32]registry.SilentLease, len(list))
	for _, l := range list {
		leases[l.Number] = l
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.at, n.leases = now, leases
}

// forget drops a lease that was renewed since.
func (n *silentNotes) forget(refs []registry.LeaseRef, verdicts []registry.Verdict) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.leases) == 0 {
		return
	}
	for i, ref := range refs {
		if verdicts[i] == registry.BeatRenewed {
			delete(n.leases, ref.Number)
		}
	}
}

// ages is the age that each noted lease has reached at time now, as a take-over may use
// it, and how many there are.
func (n *silentNotes) ages(now time.Duration) (of ageOf, count int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	leases, since := n.leases, now-n.at
	if since > silentValid {
		leases = nil
	}
	n.leases = nil // handed over: the leader keeps its own
	grown := min(since, silentGrowth)
	return func(ref registry.LeaseRef) time.Duration {
		l, found := leases[ref.Number]
		if !found || l.Grant != ref.Grant {
			return 0
		}
		return time.Duration(l.Age)*time.Millisecond + grown
	}, len(leases)
}

// silence lists those of numbers that are silent at lease time now, with their ages.
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
		word, age := s.word.Load(), s.age(now)
		if word&flagUsed == 0 || age <= silenceOf(word) {
			continue
		}
		ms := min(age.Milliseconds(), math.MaxUint32)
		list = append(list, registry.SilentLease{LeaseRef: s.ref(number), Age: uint32(ms)})
	}
	return list
}
