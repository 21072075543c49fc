package wire

import (
	"reflect"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/rollcall-io/rollcall/internal/wire/peerpb"
	"github.com/rollcall-io/rollcall/registry"
)

func TestSilentNotes_ComeBackTheSame(t *testing.T) {
	for _, want := range []registry.SilentNotes{
		{},
		{Term: 3, Age: 900},
		{Term: 4, Age: 20, Leases: []registry.SilentLease{
			{LeaseRef: registry.LeaseRef{Number: 7, Grant: registry.Position{Index: 5, Seq: 1}}, Age: 9000, Given: 2500},
			{LeaseRef: registry.LeaseRef{Number: 0}},
		}},
	} {
		b, err := EncodeSilentNotes(want)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := DecodeSilentNotes(b); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("got %+v, %v, want %+v", got, err, want)
		}
	}
}

func TestDecodeSilentNotes_RefusesWhatDoesNotFit(t *testing.T) {
	many := registry.MaxSilentLeases + 1
	for name, m := range map[string]*peerpb.SilentNotes{
		"no ages": {Lease: []uint32{1}, GrantIndex: []uint64{1}, GrantSeq: []uint32{0}},
		"given": {
			Lease: []uint32{1}, GrantIndex: []uint64{1}, GrantSeq: []uint32{0}, LeaseAgeMs: []uint32{5}, GivenMs: []uint32{1, 2},
		},
		"too many": {
			Lease: make([]uint32, many), GrantIndex: make([]uint64, many), GrantSeq: make([]uint32, many), LeaseAgeMs: make([]uint32, many),
		},
	} {
		b, err := proto.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		if n, err := DecodeSilentNotes(b); err == nil {
			t.Errorf("%s: got %d leases", name, len(n.Leases))
		}
	}
	if _, err := DecodeSilentNotes([]byte{0xff}); err == nil {
		t.Error("bytes that mean nothing")
	}
}

func TestDecodeSilentNotes_OlderNodesTellNoGrace(t *testing.T) {
	m := &peerpb.SilentNotes{Lease: []uint32{1, 2}, GrantIndex: []uint64{1, 1}, GrantSeq: []uint32{0, 1}, LeaseAgeMs: []uint32{500, 600}}
	b, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	n, err := DecodeSilentNotes(b)
	if err != nil || len(n.Leases) != 2 || n.Leases[1].Age != 600 || n.Leases[1].Given != 0 {
		t.Errorf("got %+v, %v", n, err)
	}
	m.GivenMs = []uint32{9000, 100} // more than the lease is old
	if b, err = proto.Marshal(m); err != nil {
		t.Fatal(err)
	}
	if n, err = DecodeSilentNotes(b); err != nil || n.Leases[0].Given != 500 || n.Leases[1].Given != 100 {
		t.Errorf("got %+v, %v", n, err)
	}
}
