package auth

import (
	"net/netip"
	"sync"
	"time"
)

const (
	// freeTries are the wrong passwords of one user from one address before a wait is
	// asked for, freePerAddress those of an address whatever the user. Each further one
	// doubles the wait, from firstWait up to longestWait.
	freeTries      = 5
	freePerAddress = 50
	firstWait      = time.Second
	longestWait    = 5 * time.Minute
	// forgetAfter is how long after its last failure a caller starts afresh.
	forgetAfter = 15 * time.Minute
	// maxTracked bounds the callers that are remembered.
	maxTracked = 20_000
	// sweepEvery bounds how often all of them are looked through.
	sweepEvery = time.Minute
)

// lockouts counts failed tries. A user is never locked out as such, or anyone could lock
// out anyone: only together with the address that failed.
type lockouts struct {
	mu    sync.Mutex
	now   map[caller]*failures
	swept time.Time
}

// caller is a user at an address, or an address alone when the user is "".
type caller struct{ user, address string }

// place is what counts as one address: one of IPv4, and of IPv6 the network of 64 bits in
// which a single host may take any.
func place(address string) string {
	ip, err := netip.ParseAddr(address)
	if err != nil || ip.Unmap().Is4() {
		return address
	}
	network, _ := ip.WithZone("").Prefix(64) // fails for a wrong length alone
	return network.String()
}

type failures struct {
	count int
	last  time.Time
	until time.Time
}

func (l *lockouts) init() { l.now = make(map[caller]*failures) }

// wait is how long the caller must wait before the next try, 0 when it need not.
func (l *lockouts) wait(user, address string, now time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	var longest time.Duration
	for _, c := range []caller{{user, address}, {"", address}} {
		if f := l.now[c]; f != nil {
			longest = max(longest, f.until.Sub(now))
		}
	}
	return longest
}

// add counts a failed try.
func (l *lockouts) add(user, address string, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fail(caller{user, address}, freeTries, now)
	l.fail(caller{"", address}, freePerAddress, now)
}

func (l *lockouts) fail(c caller, free int, now time.Time) {
	f := l.now[c]
	if f == nil || now.Sub(f.last) > forgetAfter {
		l.makeRoom(now)
		f = &failures{}
		l.now[c] = f
	}
	f.count++
	f.last = now
	if over := f.count - free; over >= 0 {
		wait := longestWait
		if over < 16 {
			wait = min(firstWait<<over, longestWait)
		}
		f.until = now.Add(wait)
	}
}

// makeRoom drops callers that start afresh anyway and, when all are recent, any one.
func (l *lockouts) makeRoom(now time.Time) {
	if len(l.now) < maxTracked {
		return
	}
	if now.Sub(l.swept) > sweepEvery {
		l.swept = now
		for c, f := range l.now {
			if now.Sub(f.last) > forgetAfter {
				delete(l.now, c)
			}
		}
	}
	for c := range l.now {
		if len(l.now) < maxTracked {
			return
		}
		delete(l.now, c)
	}
}

// forget is a success: the user's failures at that address no longer count. Those of the
// address do, or one account of an attacker would free it.
func (l *lockouts) forget(user, address string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.now, caller{user, address})
}
