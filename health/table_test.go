package health

import (
	"fmt"
	"slices"
	"testing"
	"time"
	"unsafe"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/rollcall-io/rollcall/registry"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// modelLease is a lease as the rules describe it, without pages, flags and atomics.
type modelLease struct {
	grant           registry.Position
	seen            time.Duration
	timeouts        registry.Timeouts
	healthy         bool
	flips, evicts   bool // in flight
	recovers        bool
	heldOnce, beats bool // beats: renewed since the take-over
}

// tableModel drives a table and the model side by side.
type tableModel struct {
	now     time.Duration
	shift   time.Duration
	start   time.Duration
	index   uint64
	table   *table
	leases  map[uint32]*modelLease
	wanted  []registry.LeaseRef // recoveries that the table asked for
	expects []registry.LeaseRef
}

func (m *tableModel) leaseTime() time.Duration { return m.now - m.shift }

func (m *tableModel) due(l *modelLease, timeout uint32, factor time.Duration) (age time.Duration, due bool) {
	age = m.leaseTime() - l.seen
	grace := ms(roundUp(l.timeouts.Interval)) + 2*time.Second
	if !l.beats && m.leaseTime()-m.start <= grace {
		return age, false
	}
	return age, age > ms(timeout)*factor
}

func roundUp(interval uint32) uint32 { return (interval + 127) / 128 * 128 }

func (m *tableModel) evictable(l *modelLease) bool {
	factor := time.Duration(1)
	if l.heldOnce {
		factor = 2
	}
	_, due := m.due(l, l.timeouts.Delete, factor)
	return due
}

func (m *tableModel) flippable(l *modelLease) bool {
	_, due := m.due(l, l.timeouts.Beat, 1)
	return due && l.healthy && !l.flips
}

func (m *tableModel) pick(t *rapid.T) (uint32, *modelLease) {
	if len(m.leases) == 0 {
		t.Skip("no lease")
	}
	var numbers []uint32
	for n := range m.leases {
		numbers = append(numbers, n)
	}
	slices.Sort(numbers)
	n := rapid.SampledFrom(numbers).Draw(t, "lease")
	return n, m.leases[n]
}

func (m *tableModel) wait(t *rapid.T) {
	m.now += time.Duration(rapid.IntRange(0, 12_000).Draw(t, "ms")) * time.Millisecond
}

func (m *tableModel) pauseProcess(t *rapid.T) {
	gap := time.Duration(rapid.IntRange(0, 60_000).Draw(t, "gap")) * time.Millisecond
	m.now += gap
	m.shift += gap
	m.table.shift.Add(int64(gap))
}

func (m *tableModel) grant(t *rapid.T) {
	// Few numbers, so that they are used again; one on a second page, so that growth is met.
	n := rapid.SampledFrom([]uint32{1, 2, 3, 4, 65_536}).Draw(t, "number")
	m.index++
	interval := rapid.SampledFrom([]uint32{1000, 5000}).Draw(t, "interval")
	l := &modelLease{
		grant: registry.Position{Index: m.index, Seq: uint32(m.index % 3)},
		seen:  m.leaseTime(), beats: m.leaseTime() > m.start, healthy: rapid.Bool().Draw(t, "healthy"),
		timeouts: registry.Timeouts{Interval: interval, Beat: interval * 3, Delete: interval * 6},
	}
	m.leases[n] = l
	m.table.LeaseGranted(registry.Lease{
		LeaseRef: registry.LeaseRef{Number: n, Grant: l.grant}, Timeouts: l.timeouts, Healthy: l.healthy,
	})
}

func (m *tableModel) beat(t *rapid.T) {
	n, l := m.pick(t)
	ref := registry.LeaseRef{Number: n, Grant: l.grant}
	want := registry.BeatRenewed
	if rapid.IntRange(0, 4).Draw(t, "stale") == 0 {
		ref.Grant.Index--
		want = registry.BeatStale
	} else {
		l.seen, l.beats = m.leaseTime(), m.leaseTime() > m.start
		switch {
		case l.evicts:
			want = registry.BeatPending
		case !l.healthy && !l.recovers:
			l.recovers = true
			m.expects = append(m.expects, ref)
		}
	}
	if got := m.table.beat(ref, m.leaseTime()); got != want {
		t.Fatalf("beat of %+v: verdict %d, want %d", ref, got, want)
	}
}

func (m *tableModel) flipped(t *rapid.T) {
	n, l := m.pick(t)
	l.healthy = rapid.Bool().Draw(t, "healthy")
	if l.healthy {
		l.recovers, l.heldOnce = false, false
	}
	m.table.LeaseFlipped(registry.LeaseRef{Number: n, Grant: l.grant}, l.healthy)
}

func (m *tableModel) release(t *rapid.T) {
	n, l := m.pick(t)
	delete(m.leases, n)
	m.table.LeaseReleased(registry.LeaseRef{Number: n, Grant: l.grant})
}

func (m *tableModel) reset(t *rapid.T) {
	if rapid.IntRange(0, 9).Draw(t, "reset") > 0 {
		return
	}
	m.table.LeasesReset()
	clear(m.leases)
}

// scan compares what is due, and claims or holds it.
func (m *tableModel) scan(t *rapid.T) {
	var f findings
	m.table.scan(m.leaseTime(), &f)
	var flips, evicts []uint32
	for n, l := range m.leases {
		switch {
		case l.evicts:
		case m.evictable(l):
			evicts = append(evicts, n)
		case m.flippable(l):
			flips = append(flips, n)
		}
	}
	slices.Sort(flips)
	slices.Sort(evicts)
	if !slices.Equal(f.flips, flips) || !slices.Equal(f.evicts, evicts) {
		t.Fatalf("due for a flip %v and eviction %v, want %v and %v", f.flips, f.evicts, flips, evicts)
	}
	switch rapid.IntRange(0, 3).Draw(t, "then") {
	case 1:
		items, _ := m.table.claimFlips(flips, f.at)
		if len(items) != len(flips) {
			t.Fatalf("claimed %d flips of %d", len(items), len(flips))
		}
		for _, n := range flips {
			m.leases[n].flips = true
		}
	case 2:
		if refs := m.table.claimEvicts(evicts, f.at); len(refs) != len(evicts) {
			t.Fatalf("claimed %d evictions of %d", len(refs), len(evicts))
		}
		for _, n := range evicts {
			m.leases[n].evicts = true
		}
	case 3:
		m.table.hold(slices.Clone(evicts))
		for _, n := range evicts {
			m.leases[n].heldOnce = true
		}
	}
}

func (m *tableModel) settle(t *rapid.T) {
	n, l := m.pick(t)
	ref := registry.LeaseRef{Number: n, Grant: l.grant}
	l.evicts, l.flips, l.recovers = false, false, false
	m.table.settle([]registry.LeaseRef{ref}, flagEvicting|flagFlipping|flagRecovering)
}

func (m *tableModel) check(t *rapid.T) {
	unhealthy := 0
	for _, l := range m.leases {
		if !l.healthy {
			unhealthy++
		}
	}
	if got := m.table.leases.Load(); got != int64(len(m.leases)) {
		t.Fatalf("%d leases, want %d", got, len(m.leases))
	}
	if got := m.table.unhealthy.Load(); got != int64(unhealthy) {
		t.Fatalf("%d unhealthy, want %d", got, unhealthy)
	}
	if !slices.Equal(m.wanted, m.expects) {
		t.Fatalf("recoveries %v, want %v", m.wanted, m.expects)
	}
}

func TestTable_ActsLikeTheRules(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &tableModel{now: time.Minute, start: time.Minute, leases: make(map[uint32]*modelLease)}
		m.table = newTable(func() time.Duration { return m.now }, restored{},
			func(ref registry.LeaseRef) { m.wanted = append(m.wanted, ref) })
		m.table.complete()
		t.Repeat(map[string]func(*rapid.T){
			"wait": m.wait, "pause": m.pauseProcess, "grant": m.grant, "beat": m.beat, "flipped": m.flipped,
			"release": m.release, "reset": m.reset, "scan": m.scan, "settle": m.settle, "": m.check,
		})
	})
}

func TestSlot_Size(t *testing.T) {
	if got := unsafe.Sizeof(slot{}); got != 32 {
		t.Errorf("%d bytes, want 32", got)
	}
}

func TestSlot_IntervalNeverHidesWhatIsDue(t *testing.T) {
	for _, row := range []registry.Timeouts{
		{Interval: 1, Beat: 1, Delete: 1}, {Interval: 5000, Beat: 5000, Delete: 5000},
		{Interval: 5000, Beat: 0, Delete: 0}, {Interval: 5000, Beat: 200, Delete: 100},
		{Interval: registry.MaxTimeout, Beat: registry.MaxTimeout, Delete: registry.MaxTimeout},
	} {
		word := packInterval(row)
		least := ms(min(row.Interval, row.Beat, row.Delete))
		if got := intervalOf(word); got < least || got-intervalUnit >= least && least > 0 {
			t.Errorf("%+v: kept as %s", row, got)
		}
		if word&(1<<flagBits-1) != 0 {
			t.Errorf("%+v: interval runs into the flags", row)
		}
	}
}

func filled(n int) *table {
	now := time.Duration(0)
	t := newTable(func() time.Duration { return now }, restored{}, func(registry.LeaseRef) {})
	t.complete()
	now = time.Hour
	for i := range n {
		t.LeaseGranted(registry.Lease{
			LeaseRef: registry.LeaseRef{Number: uint32(i + 1), Grant: registry.Position{Index: uint64(i)}},
			Timeouts: registry.DefaultTimeouts(), Healthy: true,
		})
	}
	return t
}

func BenchmarkScan1M(b *testing.B) {
	const n = 1_000_000
	t := filled(n)
	for i := range n { // as in a steady fleet: ages spread over one interval
		t.slot(uint32(i + 1)).seen.Store(int64(time.Hour - time.Duration(i%5000)*time.Millisecond))
	}
	for _, late := range []int{0, 100} { // one of so many is silent
		b.Run(fmt.Sprintf("late=%d", late), func(b *testing.B) {
			for i := 1; late > 0 && i <= n; i += late {
				t.slot(uint32(i)).seen.Store(int64(time.Hour - 20*time.Second))
			}
			var f findings
			b.ReportAllocs()
			for b.Loop() {
				t.scan(time.Hour, &f)
			}
			b.ReportMetric(float64(len(*t.pages.Load()))*pageSize*32/n, "B/lease")
		})
	}
}

// BenchmarkScan1MUnseen is the scan in the first interval of a term, when nobody has beaten.
func BenchmarkScan1MUnseen(b *testing.B) {
	t := filled(1_000_000)
	t.start = time.Hour
	var f findings
	b.ReportAllocs()
	for b.Loop() {
		t.scan(time.Hour+time.Second, &f)
	}
	b.ReportMetric(float64(len(f.fresh)), "listed")
}

func BenchmarkTakeOver1M(b *testing.B) {
	for b.Loop() {
		filled(1_000_000)
	}
}
