package health

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/rollcall-io/rollcall/registry"
)

var noted = registry.LeaseRef{Number: 7, Grant: registry.Position{Index: 9}}

// notesOf is a list with one lease.
func notesOf(term uint64, listAge, age, given uint32) registry.SilentNotes {
	return registry.SilentNotes{Term: term, Age: listAge, Leases: []registry.SilentLease{{LeaseRef: noted, Age: age, Given: given}}}
}

func TestMerge_NewestListCountsAndAnyLaterBeatWins(t *testing.T) {
	empty := func(term uint64, age uint32) registry.SilentNotes { return registry.SilentNotes{Term: term, Age: age} }
	other := registry.LeaseRef{Number: 7, Grant: registry.Position{Index: 10}}
	otherRenewed := registry.SilentNotes{Term: 3, Leases: []registry.SilentLease{{LeaseRef: other}}}
	long := registry.SilentNotes{Term: 3, Leases: make([]registry.SilentLease, maxSilent+1)}
	for _, row := range []struct {
		name       string
		all        []registry.SilentNotes
		age, given time.Duration
	}{
		{"nobody knows", nil, 0, 0},
		{"one list, grown", []registry.SilentNotes{notesOf(3, 2000, 9000, 1500)}, 11 * time.Second, 1500 * time.Millisecond},
		{"grows for as long as beats were taken", []registry.SilentNotes{notesOf(3, 9000, 9000, 0)}, 13 * time.Second, 0},
		{"too old", []registry.SilentNotes{notesOf(3, 10_001, 9000, 0)}, 0, 0},
		{"newer of one term", []registry.SilentNotes{notesOf(3, 900, 9000, 0), notesOf(3, 100, 9800, 0)}, 9900 * time.Millisecond, 0},
		{"later term, though older", []registry.SilentNotes{notesOf(3, 100, 20_000, 9000), notesOf(4, 800, 6000, 100)}, 6800 * time.Millisecond, 100 * time.Millisecond},
		{"later term without it", []registry.SilentNotes{notesOf(3, 100, 20_000, 0), empty(4, 800)}, 0, 0},
		{"renewed on another node", []registry.SilentNotes{notesOf(3, 100, 9000, 0), notesOf(3, 600, 0, 0)}, 0, 0},
		{"renewed on a node with an earlier term's list", []registry.SilentNotes{notesOf(4, 100, 9000, 0), notesOf(3, 600, 0, 0)}, 0, 0},
		{"renewed too long ago", []registry.SilentNotes{notesOf(4, 100, 9000, 0), notesOf(3, 11_000, 0, 0)}, 9100 * time.Millisecond, 0},
		{"another grant renewed", []registry.SilentNotes{notesOf(4, 100, 9000, 0), otherRenewed}, 9100 * time.Millisecond, 0},
		{"of this very term or later", []registry.SilentNotes{notesOf(9, 0, 9000, 0), notesOf(10, 0, 9000, 0)}, 0, 0},
		{"too long a list", []registry.SilentNotes{long, notesOf(2, 0, 9000, 0)}, 9 * time.Second, 0},
		{"more given than old", []registry.SilentNotes{notesOf(3, 0, 9000, 90_000)}, 9 * time.Second, 9 * time.Second},
		{"never any list", []registry.SilentNotes{empty(0, math.MaxUint32), notesOf(3, 0, 9000, 0)}, 9 * time.Second, 0},
	} {
		got, _ := merge(row.all, 9).of(noted)
		if got.age != row.age || got.given != row.given {
			t.Errorf("%s: age %s, given %s, want %s, %s", row.name, got.age, got.given, row.age, row.given)
		}
	}
	if _, known := merge([]registry.SilentNotes{notesOf(3, 0, 9000, 0)}, 9).of(other); known {
		t.Error("a note counts for another grant of the lease")
	}
}

func TestSilentNotes_KeepWhatWasRenewedUntilTheNextList(t *testing.T) {
	var n silentNotes
	if got := n.list(time.Second); got.Age != math.MaxUint32 {
		t.Errorf("without a list: %+v", got)
	}
	list := []registry.SilentLease{{LeaseRef: noted, Age: 10_000, Given: 300}}
	n.set(3, list, time.Minute)
	n.forget(registry.LeaseRef{Number: 7, Grant: registry.Position{Index: 8}}, registry.LeaseRef{Number: 8})
	n.forgetRenewed([]registry.LeaseRef{noted}, []registry.Verdict{registry.BeatStale})
	got := n.list(time.Minute + 2*time.Second)
	if got.Term != 3 || got.Age != 2000 || len(got.Leases) != 1 || got.Leases[0] != list[0] {
		t.Errorf("got %+v", got)
	}
	n.forgetRenewed([]registry.LeaseRef{noted}, []registry.Verdict{registry.BeatRenewed})
	if got = n.list(time.Minute); len(got.Leases) != 1 || got.Leases[0].Age != 0 {
		t.Errorf("after a beat: %+v", got)
	}
	n.set(3, list, time.Minute)
	if got = n.list(time.Minute); got.Leases[0].Age != 10_000 {
		t.Errorf("after the next list: %+v", got)
	}
}

func TestSilence_GraceAddsUpUntilABeat(t *testing.T) {
	now := time.Minute
	known := restored{map[uint32]silence{7: {grant: noted.Grant, age: 9 * time.Second, given: 3 * time.Second}}}
	table := newTable(func() time.Duration { return now }, known, func(registry.LeaseRef) {})
	var told []registry.LeaseRef
	table.renewed = func(ref registry.LeaseRef) { told = append(told, ref) }
	grant := func(ref registry.LeaseRef) {
		table.LeaseGranted(registry.Lease{LeaseRef: ref, Timeouts: registry.DefaultTimeouts(), Healthy: true})
	}
	unseen := registry.LeaseRef{Number: 8, Grant: noted.Grant}
	grant(noted)
	grant(unseen)
	table.complete()
	list := func() []registry.SilentLease {
		var f findings
		table.scan(now, &f)
		return table.silence(append(f.quiet, f.fresh...), now)
	}
	now += 2 * time.Second
	got := list()
	want := []registry.SilentLease{{LeaseRef: noted, Age: 11_000, Given: 5000}, {LeaseRef: unseen, Age: 2000, Given: 2000}}
	if len(got) != 2 || got[0] != want[0] || got[1] != want[1] {
		t.Fatalf("got %+v, want %+v", got, want)
	}
	for range 2 {
		table.beat(noted, now)
	}
	table.renew(unseen, now)
	if len(told) != 2 || told[0] != noted || told[1] != unseen {
		t.Errorf("told of %v, want each once", told)
	}
	now += 5 * time.Second
	if got = list(); len(got) != 0 {
		t.Errorf("listed within an interval of a beat: %+v", got)
	}
	now += time.Second
	if got = list(); len(got) != 2 || got[0].Age != 6000 || got[0].Given != 0 {
		t.Errorf("after a beat and a new silence: %+v", got)
	}
}

func TestRace_BeatBesideTheListIsTold(t *testing.T) {
	table, ref, at, _ := dueTable(8 * time.Second)
	told := 0
	table.renewed = func(registry.LeaseRef) { told++ }
	s := table.slot(ref.Number)
	for round := range raceRounds {
		s.seen.Store(int64(at - 8*time.Second))
		told = 0
		var list []registry.SilentLease
		together(round,
			func() { table.beat(ref, at) },
			func() { list = table.silence([]uint32{ref.Number}, at) },
		)
		if len(list) != told {
			t.Fatalf("listed %d times and told off %d times", len(list), told)
		}
	}
}

func TestFindings_SampleTakesEverybodyInTurn(t *testing.T) {
	var f findings
	const n = 20 * maxSilent
	high := 0
	for range 20 {
		f.reset(0)
		for i := range uint32(n) {
			f.sample(i)
		}
		if len(f.fresh) != maxSilent || f.unseen != n {
			t.Fatalf("%d of %d drawn, want %d", len(f.fresh), f.unseen, maxSilent)
		}
		for _, number := range f.fresh {
			if number >= n/2 {
				high++
			}
		}
	}
	if share := float64(high) / (20 * maxSilent); share < 0.45 || share > 0.55 {
		t.Errorf("%.2f of those drawn have a high number, want half", share)
	}
}

func TestBeat_OfAListedLeaseIsAnsweredWhenOthersKnow(t *testing.T) {
	inWorld(t, func(w *world, n1, n2, _ *node) {
		key := w.register(specOf(address(1)))
		time.Sleep(8 * time.Second)
		if !n2.notesSilent() {
			t.Fatal("another node does not note the lease as silent before its beat")
		}
		for _, row := range []struct {
			link, want time.Duration
		}{{50 * time.Millisecond, 50 * time.Millisecond}, {0, 0}, {time.Minute, 0}} {
			w.with(func() { w.tellTime = row.link })
			began := time.Now()
			n1.beat(key)
			if took := time.Since(began); took != row.want {
				t.Errorf("answered after %s, want %s", took, row.want)
			}
		}
		if n2.notesSilent() { // told of the beat, or given a list of after it
			t.Errorf("another node still notes %+v", n2.keeper.Silent())
		}
		time.Sleep(8 * time.Second) // listed again
		began := time.Now()
		n1.beat(key)
		if took := time.Since(began); took != tellPatience {
			t.Errorf("answered after %s while the others don't answer, want %s", took, tellPatience)
		}
	})
}

// notesSilent tells whether the node notes a lease that was not renewed since.
func (n *node) notesSilent() bool {
	return slices.ContainsFunc(n.keeper.Silent().Leases, func(l registry.SilentLease) bool { return l.Age > 0 })
}
