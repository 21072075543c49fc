package fsm

import (
	"bytes"
	"reflect"
	"testing"

	"github.com/hashicorp/raft"
	"pgregory.net/rapid"

	"github.com/rollcall-io/rollcall/registry"
)

// genLog draws a log, applied entry by entry to f as it grows, with the responses.
func genLog(t *rapid.T, f *FSM, s *script) (logs []*raft.Log, responses []any) {
	for range rapid.IntRange(1, 25).Draw(t, "entries") {
		if rapid.IntRange(0, 9).Draw(t, "election") == 0 {
			s.term++
		}
		var l *raft.Log
		switch rapid.IntRange(0, 9).Draw(t, "type") {
		case 0:
			l = s.configuration()
		case 1:
			s.time -= int64(rapid.IntRange(0, 20).Draw(t, "clock steps back")) * second
			fallthrough
		default:
			var commands []registry.Command
			for range rapid.IntRange(0, 5).Draw(t, "commands") {
				commands = append(commands, genCommand(t, f, s))
			}
			if index, d := f.Digest(); index > 0 && rapid.Bool().Draw(t, "check") {
				commands = append(commands, registry.DigestCheck{At: index, Digest: d})
			}
			l = s.entry(commands...)
		}
		logs = append(logs, l)
		responses = append(responses, f.Apply(l))
	}
	return logs, responses
}

// Whatever way Raft cuts the log into batches, and wherever a node starts from a
// snapshot, results, digest, snapshot file and leases are the same.
func TestReplicas_AreEqual(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		one := New(Options{})
		defer one.Close()
		logs, want := genLog(rt, one, newScript(t))

		two := New(Options{})
		defer func() { two.Close() }()
		var got []any
		for at := 0; at < len(logs); {
			n := rapid.IntRange(1, len(logs)-at).Draw(rt, "batch")
			got = append(got, two.ApplyBatch(logs[at:at+n])...)
			at += n
			if rapid.IntRange(0, 2).Draw(rt, "restart") == 0 {
				file := save(t, two)
				if yes := divergedAt(two); yes != 0 {
					rt.Fatalf("diverged at %d", yes)
				}
				two.Close()
				two = New(Options{})
				load(t, two, file)
			}
		}
		if !reflect.DeepEqual(got, want) {
			rt.Fatalf("responses %+v, want %+v", got, want)
		}
		compareReplicas(rt, t, one, two)
	})
}

func divergedAt(f *FSM) uint64 {
	index, _ := f.Diverged()
	return index
}

func compareReplicas(rt *rapid.T, t *testing.T, one, two *FSM) {
	if a, b := contents(t, one), contents(t, two); a != b {
		rt.Fatalf("replicas differ:\n%s\n%s", a, b)
	}
	indexA, digestA := one.Digest()
	indexB, digestB := two.Digest()
	if indexA != indexB || digestA != digestB {
		rt.Fatalf("digests differ: %x at %d, %x at %d", digestA, indexA, digestB, indexB)
	}
	if a, b := save(t, one), save(t, two); !bytes.Equal(a, b) {
		rt.Fatalf("snapshots differ: %d and %d bytes", len(a), len(b))
	}
	if a, b := recount(t, one), digestA; a != b {
		rt.Fatalf("digest from nothing is %x, kept is %x", a, b)
	}
	if a, b := divergedAt(one), divergedAt(two); a != 0 || b != 0 {
		rt.Fatalf("diverged at %d and %d", a, b)
	}
	if a, b := leaseList(one), leaseList(two); !reflect.DeepEqual(a, b) {
		rt.Fatalf("leases differ: %+v, %+v", a, b)
	}
	if a, b := one.EmptyServices(1<<60, 99), two.EmptyServices(1<<60, 99); !reflect.DeepEqual(a, b) {
		rt.Fatalf("empty services differ: %+v, %+v", a, b)
	}
	servicesA, instancesA := one.Counts()
	if servicesB, instancesB := two.Counts(); servicesA != servicesB || instancesA != instancesB {
		rt.Fatalf("counts differ: %d and %d services, %d and %d instances", servicesA, servicesB, instancesA, instancesB)
	}
}

// leaseList is the table of leases as an observer who starts now is told of it.
func leaseList(f *FSM) []registry.Lease {
	book := newLeaseBook()
	f.ObserveLeases(book)()
	list := make([]registry.Lease, 0, len(book.leases))
	for n := uint32(1); len(list) < len(book.leases); n++ {
		if l, found := book.leases[n]; found {
			list = append(list, l)
		}
	}
	return list
}

// leaseBook keeps the leases that it is told of.
type leaseBook struct {
	leases map[uint32]registry.Lease
	resets int
	faults []string
}

func newLeaseBook() *leaseBook { return &leaseBook{leases: make(map[uint32]registry.Lease)} }

func (b *leaseBook) LeaseGranted(l registry.Lease) { b.leases[l.Number] = l }

func (b *leaseBook) LeaseFlipped(ref registry.LeaseRef, healthy bool) {
	l := b.leases[ref.Number]
	if l.LeaseRef != ref || l.Healthy == healthy {
		b.faults = append(b.faults, "flip of what is not there or as it was")
	}
	l.Healthy = healthy
	b.leases[ref.Number] = l
}

func (b *leaseBook) LeaseReleased(ref registry.LeaseRef) {
	if b.leases[ref.Number].LeaseRef != ref {
		b.faults = append(b.faults, "release of what is not there")
	}
	delete(b.leases, ref.Number)
}

func (b *leaseBook) LeasesReset() {
	clear(b.leases)
	b.resets++
}

// An observer that only listens knows at each moment what the table holds.
func TestObserveLeases_FollowsTheTable(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		f, s := New(Options{}), newScript(t)
		defer f.Close()
		early, late := newLeaseBook(), newLeaseBook()
		f.ObserveLeases(early)
		genLog(rt, f, s)
		stop := f.ObserveLeases(late)
		genLog(rt, f, s)
		for _, book := range []*leaseBook{early, late} {
			if len(book.faults) > 0 {
				rt.Fatal(book.faults)
			}
			for number, l := range book.leases {
				if got, found := f.Lease(number); !found || got != l {
					rt.Fatalf("lease %d is %+v, %t; the observer knows %+v", number, got, found, l)
				}
			}
			if len(book.leases) != f.state.leases.inUse() {
				rt.Fatalf("observer knows %d leases of %d", len(book.leases), f.state.leases.inUse())
			}
		}
		stop()
		kept := len(late.leases)
		file := save(t, f)
		load(t, f, file)
		if early.resets != 1 || late.resets != 0 || len(late.leases) != kept {
			rt.Fatalf("resets: %d of the observer, %d of the one that stopped", early.resets, late.resets)
		}
		if len(early.leases) != f.state.leases.inUse() {
			rt.Fatalf("after a restore the observer knows %d leases of %d", len(early.leases), f.state.leases.inUse())
		}
	})
}
