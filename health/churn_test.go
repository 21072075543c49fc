package health

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/rollcall-io/rollcall/registry"
)

// leaderless is how long it takes to replace a leader here; a crashed node is back after
// half of that.
const leaderless = 1600 * time.Millisecond

// fleet are instances that beat through random nodes, each until its own end.
type fleet struct {
	*world
	interval time.Duration
	ctx      context.Context
	group    sync.WaitGroup

	mu   sync.Mutex // taken under the world's
	last map[uint32]time.Time
	left map[uint32]time.Duration // how long after its last beat an instance was gone
}

// join registers an instance that beats for a time, 0 for ever.
func (f *fleet) join(r *rand.Rand, i int, spec []registry.Pair, life time.Duration) registry.LeaseRef {
	key := f.register(specOf(address(i), spec...))
	ref := refOf(f.Instance(key))
	f.heard(ref)
	f.watchGone(key, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.left[ref.Number] = time.Since(f.last[ref.Number])
	})
	end := time.Now().Add(life)
	f.group.Go(func() {
		sleep(f.ctx, time.Duration(r.Int64N(int64(f.interval))))
		for f.ctx.Err() == nil && (life == 0 || time.Now().Before(end)) {
			f.beatOnce(r, key, ref)
			sleep(f.ctx, f.interval*9/10+time.Duration(r.Int64N(int64(f.interval/5))))
		}
	})
	return ref
}

// heard notes the time of a sign of life.
func (f *fleet) heard(ref registry.LeaseRef) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.last[ref.Number] = time.Now()
}

// beatOnce tries the nodes in random order, as a client does.
func (f *fleet) beatOnce(r *rand.Rand, key registry.InstanceKey, ref registry.LeaseRef) {
	for _, i := range r.Perm(3) {
		f.heard(ref)
		n := f.node(fmt.Sprintf("n%d", i+1))
		_, err := n.keeper.Beat(f.ctx, registry.Beat{Key: key})
		if err == nil && !n.crashed() { // who crashed meanwhile answered nothing
			return
		}
	}
}

// crashes lets leaders crash, each period after the one before, until the time is over.
// The crashed node wins again if again is set, else any node.
func (f *fleet) crashes(r *rand.Rand, period func() time.Duration, again bool, total time.Duration) {
	for end := time.Now().Add(total); time.Now().Before(end); {
		fallen := f.crash()
		time.Sleep(leaderless / 2)
		f.start(fallen)
		time.Sleep(leaderless / 2)
		next := fallen
		if !again {
			next = fmt.Sprintf("n%d", r.IntN(3)+1)
		}
		f.elect(next)
		time.Sleep(period() - leaderless)
	}
}

// churnCase is a fleet under leaders that crash.
type churnCase struct {
	name           string
	spec           []registry.Pair
	interval       time.Duration
	expire         time.Duration
	least, longest time.Duration // the time from one crash to the next
	again          bool
	who            []bool // values of again
}

// bound is by how much the dead may be late. A last beat without a leader is kept and counts
// with the next one; an instance that then is not listed as silent before that leader
// crashes starts afresh with the one after. From then on it is gone after its timeout, or
// when leaders have given it the grace if they take longer, and at the first scan that may
// act on it. Of each term some 0.6 s don't count: what comes after the last list.
func (c churnCase) bound() time.Duration {
	silent := c.interval + min(c.interval/2, maxSilenceSlack) + time.Second
	lost := leaderless + min(silent, c.longest-leaderless) + leaderless
	counted := c.least - leaderless - 600*time.Millisecond
	terms := (c.interval + 2*time.Second + intervalUnit + counted - 1) / counted
	return lost + max(0, terms*c.least-c.expire) + leaderless + 1500*time.Millisecond
}

func (c churnCase) run(t *testing.T, seed uint64) {
	inWorld(t, func(w *world, _, _, _ *node) {
		ctx, cancel := context.WithCancel(context.Background())
		f := &fleet{world: w, interval: c.interval, ctx: ctx, last: map[uint32]time.Time{}, left: map[uint32]time.Duration{}}
		random := func(i int) *rand.Rand { return rand.New(rand.NewPCG(seed, uint64(i))) }
		living, dead := map[uint32]bool{}, map[uint32]bool{}
		for i := range 300 {
			living[f.join(random(i), i, c.spec, 0).Number] = true
		}
		for i := range 40 {
			dead[f.join(random(1000+i), 1000+i, c.spec, time.Duration(i+1)*time.Second).Number] = true
		}
		r := random(-1)
		period := func() time.Duration { return c.least + time.Duration(r.Int64N(int64(c.longest-c.least)+1)) }
		f.crashes(r, period, c.again, 42*time.Second+c.expire+c.bound())
		cancel()
		f.group.Wait()
		c.judge(t, f, living, dead)
	})
}

func (c churnCase) judge(t *testing.T, f *fleet, living, dead map[uint32]bool) {
	for _, l := range f.commands() {
		switch b := l.command.(type) {
		case registry.HealthBatch:
			for _, item := range b.Items {
				if living[item.Lease] {
					t.Errorf("%s: lease %d that beats was called healthy %v", l.at.Format("04:05.000"), item.Lease, item.Healthy)
				}
			}
		case registry.EvictBatch:
			for _, ref := range b.Items {
				if living[ref.Number] {
					t.Errorf("%s: lease %d that beats was evicted", l.at.Format("04:05.000"), ref.Number)
				}
			}
		}
	}
	latest := time.Duration(0)
	for number := range dead {
		after, gone := f.left[number]
		if !gone || after <= c.expire || after > c.expire+c.bound() {
			t.Errorf("lease %d: gone %v, %s after its last beat, want %s and at most %s more", number, gone, after, c.expire, c.bound())
		}
		latest = max(latest, after)
	}
	t.Logf("the last was gone %s after its last beat; allowed %s", latest, c.expire+c.bound())
}

// TestChurn_TheDeadLeaveAndTheLivingStay: terms shorter than the grace expired nobody, and
// a leader that crashed and won again at once forgot who had been silent.
func TestChurn_TheDeadLeaveAndTheLivingStay(t *testing.T) {
	const seed = 7
	for _, like := range []churnCase{
		{name: "defaults", interval: 5 * time.Second, expire: 30 * time.Second, who: []bool{false, true}},
		{name: "short", spec: timeouts(1000, 6000, 12000), interval: time.Second, expire: 12 * time.Second, who: []bool{true}},
		{name: "tight", spec: timeouts(1000, 3000, 6000), interval: time.Second, expire: 6 * time.Second, who: []bool{false}},
	} {
		for _, every := range [][2]time.Duration{{3, 3}, {4, 4}, {5, 5}, {7, 7}, {10, 10}, {3, 12}} {
			for _, again := range like.who {
				c := like
				c.least, c.longest, c.again = every[0]*time.Second, every[1]*time.Second, again
				t.Run(fmt.Sprintf("%s/every=%d-%ds/again=%v", c.name, every[0], every[1], again), func(t *testing.T) { c.run(t, seed) })
			}
		}
	}
}
