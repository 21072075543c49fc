package wire

import (
	"errors"
	"reflect"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/rollcall-io/rollcall/internal/wire/peerpb"
	"github.com/rollcall-io/rollcall/registry"
)

// through sends a message over the wire and back.
func through[M proto.Message](t *testing.T, sent, got M) M {
	t.Helper()
	b, err := proto.Marshal(sent)
	if err != nil {
		t.Fatal(err)
	}
	if err := proto.Unmarshal(b, got); err != nil {
		t.Fatal(err)
	}
	return got
}

func TestOutcomes_ComeBackTheSame(t *testing.T) {
	want := []Outcome{
		{Result: registry.Result{Index: 7, Changed: true}},
		{Result: registry.Result{Index: 7}},
		{Result: registry.Result{Index: 8, Err: registry.ErrKindMismatch}},
		{Err: registry.ErrOverloaded},
		{Result: registry.Result{Index: 9, Changed: true, Skipped: 3, Touched: []registry.Target{
			{Address: registry.Address{Cluster: "c", IP: "10.0.0.1", Port: 65535}, Ephemeral: true},
		}}},
		{Result: registry.Result{Index: 9, Err: registry.Invalid("port", "70000", "too high")}},
	}
	got, err := DecodeOutcomes(through(t, EncodeOutcomes(want), &peerpb.ProposeResponse{}), len(want))
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Fatalf("got %+v, %v", got, err)
	}
}

func TestEncodeOutcomes_NamesTheLastEntry(t *testing.T) {
	done := func(index, term uint64) Outcome { return Outcome{Result: registry.Result{Index: index}, Term: term} }
	for name, tc := range map[string]struct {
		outcomes    []Outcome
		index, term uint64
	}{
		"the greatest of its entries": {[]Outcome{done(7, 2), done(9, 3), done(8, 3)}, 9, 3},
		"unchanged, without an entry": {[]Outcome{done(9, 0), done(7, 2)}, 7, 2},
		"refused by Apply":            {[]Outcome{{Result: registry.Result{Index: 5, Err: registry.ErrKindMismatch}, Term: 2}}, 5, 2},
		"no entry at all":             {[]Outcome{{Err: registry.ErrOverloaded}, done(9, 0)}, 0, 0},
	} {
		last := through(t, EncodeOutcomes(tc.outcomes), &peerpb.ProposeResponse{}).Last
		if last.GetIndex() != tc.index || last.GetTerm() != tc.term {
			t.Errorf("%s: %v", name, last)
		}
	}
}

func TestDecodeOutcomes_RefusesWhatDoesNotFit(t *testing.T) {
	for name, m := range map[string]*peerpb.ProposeResponse{
		"too few":         {Index: []uint64{1}},
		"too many":        {Index: []uint64{1, 2, 3}},
		"neither":         {Index: []uint64{1, 0}},
		"changed outside": {Index: []uint64{1, 2}, Changed: []uint32{2}},
		"detail outside":  {Index: []uint64{1, 2}, Details: []*peerpb.Detail{{At: 2}}},
		"code":            {Index: []uint64{1, 0}, Details: []*peerpb.Detail{{At: 1, Fault: &peerpb.Fault{Code: 256}}}},
		"port":            {Index: []uint64{1, 2}, Details: []*peerpb.Detail{{At: 1, Touched: []*peerpb.Touched{{Port: 65536}}}}},
	} {
		if _, err := DecodeOutcomes(m, 2); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestFault_KeepsCodeAndHidesNothing(t *testing.T) {
	if EncodeFault(nil) != nil || DecodeFault(nil) != nil {
		t.Error("no error becomes one")
	}
	if err := DecodeFault(EncodeFault(registry.ErrNotLeader)); !errors.Is(err, registry.ErrNotLeader) {
		t.Errorf("got %v", err)
	}
	err := DecodeFault(EncodeFault(errors.New("disk on fire")))
	if !errors.Is(err, registry.ErrUncertain) || err.Error() != "disk on fire" {
		t.Errorf("got %v", err)
	}
}

func TestBeats_ComeBackTheSame(t *testing.T) {
	want := registry.BeatBatch{
		Node: "n1", Applied: 12,
		Leases: []registry.LeaseRef{{Number: 0, Grant: registry.Position{Index: 5, Seq: 1}}, {Number: 9}},
		Keys: []registry.InstanceKey{{
			Service: registry.ServiceKey{Namespace: "public", Grouped: "g@@s"}, Cluster: "c", IP: "10.0.0.1", Port: 80,
		}},
	}
	got, err := DecodeBeats(through(t, EncodeBeats(want), &peerpb.BeatsRequest{}))
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Fatalf("got %+v, %v", got, err)
	}
	answer := registry.BeatAnswer{
		Leases: []registry.Verdict{registry.BeatRenewed, registry.BeatPending}, Keys: []registry.Verdict{registry.BeatTombstoned},
		HasSilent: true, Silent: []registry.SilentLease{{LeaseRef: want.Leases[0], Age: 1500, Given: 700}}, Term: 4,
	}
	back, err := DecodeBeatAnswer(through(t, EncodeBeatAnswer(answer), &peerpb.BeatsResponse{}), 2, 1)
	if err != nil || !reflect.DeepEqual(back, answer) {
		t.Fatalf("got %+v, %v", back, err)
	}
}

func TestDecodeBeats_RefusesWhatDoesNotFit(t *testing.T) {
	if _, err := DecodeBeats(&peerpb.BeatsRequest{Lease: []uint32{1}, GrantIndex: []uint64{1}}); err == nil {
		t.Error("columns of different length")
	}
	if _, err := DecodeBeats(&peerpb.BeatsRequest{Keys: []*peerpb.Key{{Port: 70000}}}); err == nil {
		t.Error("port 70000")
	}
	if _, err := DecodeBeatAnswer(&peerpb.BeatsResponse{Leases: []byte{1}}, 2, 0); err == nil {
		t.Error("one verdict for two beats")
	}
	if _, err := DecodeBeatAnswer(&peerpb.BeatsResponse{SilentLease: []uint32{1}}, 0, 0); err == nil {
		t.Error("silent lease without an age")
	}
}
