package health

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rollcall-io/rollcall/registry"
)

// raceRounds is how often each race is run. The two sides need only start together;
// which wins varies by itself.
const raceRounds = 20_000

// together runs two functions side by side, the one on a goroutine that spins until the
// other begins, and waits for both.
func together(round int, a, b func()) {
	if round%2 == 0 {
		a, b = b, a // the one that has to be woken comes last more often
	}
	var ready, begin atomic.Bool
	done := make(chan struct{})
	go func() {
		defer close(done)
		ready.Store(true)
		for i := 0; !begin.Load(); i++ {
			if i%1000 == 999 {
				runtime.Gosched()
			}
		}
		a()
	}()
	for !ready.Load() {
		runtime.Gosched()
	}
	begin.Store(true)
	b()
	<-done
}

// dueTable is a table with one lease, seen so long before at that it is due.
func dueTable(silent time.Duration) (t *table, ref registry.LeaseRef, at time.Duration, recoveries *atomic.Int32) {
	now := time.Duration(0)
	recoveries = new(atomic.Int32)
	t = newTable(func() time.Duration { return now }, restored{}, func(registry.LeaseRef) { recoveries.Add(1) })
	t.complete()
	now = time.Hour
	ref = registry.LeaseRef{Number: 1, Grant: registry.Position{Index: 1}}
	t.LeaseGranted(registry.Lease{LeaseRef: ref, Timeouts: registry.DefaultTimeouts(), Healthy: true})
	return t, ref, now + silent, recoveries
}

func TestRace_NoBeatIsAcceptedAndEvictedAllTheSame(t *testing.T) {
	table, ref, at, _ := dueTable(31 * time.Second)
	s := table.slot(ref.Number)
	claims := 0
	for round := range raceRounds {
		s.seen.Store(int64(at - 31*time.Second))
		var verdict registry.Verdict
		var claimed []registry.LeaseRef
		together(round,
			func() { verdict = table.beat(ref, at+time.Millisecond) },
			func() { claimed = table.claimEvicts([]uint32{ref.Number}, at) },
		)
		if len(claimed) > 0 {
			claims++
			if verdict == registry.BeatRenewed {
				t.Fatal("the beat was told that the lease is renewed, and the lease is being evicted")
			}
			table.settle(claimed, flagEvicting)
		}
	}
	t.Logf("%d of %d evictions came first", claims, raceRounds)
}

func TestRace_BeatBesideAFlipRecovers(t *testing.T) {
	table, ref, at, recoveries := dueTable(16 * time.Second)
	s := table.slot(ref.Number)
	for round := range raceRounds {
		s.seen.Store(int64(at - 16*time.Second))
		recoveries.Store(0)
		flipped := false
		together(round,
			func() { table.beat(ref, at+time.Millisecond) },
			func() {
				items, seen := table.claimFlips([]uint32{ref.Number}, at)
				if len(items) == 0 {
					return
				}
				flipped = true
				table.LeaseFlipped(ref, false)
				table.settleFlips(items, seen)
			},
		)
		if want := map[bool]int32{true: 1, false: 0}[flipped]; recoveries.Load() != want {
			t.Fatalf("flipped %v: %d recoveries, want %d", flipped, recoveries.Load(), want)
		}
		table.LeaseFlipped(ref, true)
	}
}

func TestRace_RenewalBesideAClaim(t *testing.T) {
	table, ref, at, _ := dueTable(31 * time.Second)
	s := table.slot(ref.Number)
	for round := range raceRounds {
		s.seen.Store(int64(at - 31*time.Second))
		var renewed bool
		var claimed []registry.LeaseRef
		together(round,
			func() { renewed = table.renew(ref, at+time.Millisecond) },
			func() { claimed = table.claimEvicts([]uint32{ref.Number}, at) },
		)
		if renewed && len(claimed) > 0 {
			t.Fatal("renewed without a log entry while it is being evicted")
		}
		table.settle(claimed, flagEvicting)
	}
}

func TestRace_GrantsBeatsAndScansSideBySide(t *testing.T) {
	table, ref, _, _ := dueTable(0)
	var grant atomic.Uint64
	grant.Store(1)
	stop := make(chan struct{})
	var group sync.WaitGroup
	again := func(do func()) {
		for {
			select {
			case <-stop:
				return
			default:
				do()
			}
		}
	}
	var f findings
	group.Go(func() {
		again(func() {
			table.scan(time.Hour+time.Second, &f)
			if len(table.claimEvicts(f.evicts, f.at)) > 0 {
				t.Error("a fresh lease was claimed")
			}
		})
	})
	group.Go(func() {
		again(func() {
			g := registry.Position{Index: grant.Load()}
			table.beat(registry.LeaseRef{Number: ref.Number, Grant: g}, time.Hour)
		})
	})
	for i := range uint64(raceRounds) {
		table.LeaseGranted(registry.Lease{
			LeaseRef: registry.LeaseRef{Number: ref.Number, Grant: registry.Position{Index: i + 2}},
			Timeouts: registry.DefaultTimeouts(), Healthy: i%2 == 0,
		})
		grant.Store(i + 2)
		table.LeaseReleased(registry.LeaseRef{Number: ref.Number, Grant: registry.Position{Index: i + 2}})
	}
	close(stop)
	group.Wait()
	if got := table.leases.Load(); got != 0 {
		t.Errorf("%d leases counted, want 0", got)
	}
}
