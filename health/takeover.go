package health

import (
	"context"
	"time"

	"github.com/rollcall-io/rollcall/registry"
)

const (
	// askPatience bounds the question to the other nodes at a take-over; until it is
	// answered they keep the beats that come.
	askPatience = 250 * time.Millisecond
	// silentValid is how old a list may be at a take-over. In an older one too many may
	// have come back without this node's knowledge.
	silentValid = 10 * time.Second
	// silentGrowth bounds how much a list's ages grow until the take-over: the time for
	// which beats are still taken after the last answered batch, and the time between two
	// batches. Clients that were refused for longer must not look silent for it.
	silentGrowth = acceptWithoutLeader + idleEvery
	// leastGrace is what a leader gives in any case, so that beats which the other nodes
	// kept come before it judges.
	leastGrace = 500 * time.Millisecond
)

// silence is how long a lease has been silent when a leader takes it over, and how much of
// that leaders have given it since one first took it over silent.
type silence struct {
	grant      registry.Position
	age, given time.Duration
}

// restored is what a take-over knows of leases, by number.
type restored struct{ leases map[uint32]silence }

// of is what is known of a lease.
func (r restored) of(ref registry.LeaseRef) (silence, bool) {
	s, found := r.leases[ref.Number]
	if !found || s.grant != ref.Grant {
		return silence{}, false
	}
	return s, true
}

// silent is the number of leases that start with an age.
func (r restored) silent() (n int) {
	for _, s := range r.leases {
		if s.age > 0 {
			n++
		}
	}
	return n
}

// silentBefore is what this node and the others know of silent leases as a term begins.
func (k *Keeper) silentBefore(ctx context.Context, term uint64) restored {
	var all []registry.SilentNotes
	if k.opts.Peers != nil {
		ctx, cancel := context.WithTimeout(ctx, askPatience)
		defer cancel()
		all = k.opts.Peers.AskSilent(ctx)
	}
	return merge(append(all, k.notes.list(k.opts.Now())), term)
}

// merge makes one view of what several nodes note as a term begins. The newest list
// counts, that of the latest term: it is the work of a leader who knew the others' and had
// beats since. A lease of which any node knows a later beat starts afresh. Lists that
// cannot be right are left out.
func merge(all []registry.SilentNotes, term uint64) restored {
	newest := -1
	for i, n := range all {
		if !usable(n, term) {
			continue
		}
		if newest < 0 || n.Term > all[newest].Term || n.Term == all[newest].Term && n.Age < all[newest].Age {
			newest = i
		}
	}
	if newest < 0 {
		return restored{}
	}
	leases := make(map[uint32]silence, len(all[newest].Leases))
	grown := min(ms(all[newest].Age), silentGrowth)
	for _, l := range all[newest].Leases {
		s := silence{grant: l.Grant}
		if l.Age > 0 {
			s.age, s.given = ms(l.Age)+grown, ms(min(l.Given, l.Age))
		}
		leases[l.Number] = s
	}
	for _, n := range all {
		if !usable(n, term) {
			continue
		}
		for _, l := range n.Leases {
			if s, found := leases[l.Number]; found && l.Age == 0 && s.grant == l.Grant {
				leases[l.Number] = silence{grant: l.Grant}
			}
		}
	}
	return restored{leases}
}

func usable(n registry.SilentNotes, term uint64) bool {
	return n.Term < term && ms(n.Age) <= silentValid && len(n.Leases) <= maxSilent
}

func ms(n uint32) time.Duration { return time.Duration(n) * time.Millisecond }
