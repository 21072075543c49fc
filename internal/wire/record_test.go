package wire_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"reflect"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/rollcall-io/rollcall/internal/wire"
	"github.com/rollcall-io/rollcall/registry"
)

var sampleInstance = registry.Instance{
	Spec: sampleSpec, SnowflakeID: 2, Lease: 3,
	Grant: registry.Position{Index: 300, Seq: 2}, Generation: registry.Position{Index: 299, Seq: 1},
}

var sampleServiceRecord = registry.Service{
	Key: sampleService,
	ServiceSpec: registry.ServiceSpec{
		ProtectThreshold: 0.5, Metadata: sampleSpec.Metadata,
		Selector: registry.Selector{Type: registry.SelectorLabel, Expression: "a = b"},
	},
	Manual: true, Revision: 9, Stamp: 1_800_000_000_000, EmptySince: 1_800_000_000_001,
	Clusters: []registry.Cluster{registry.NewCluster("DEFAULT"), registry.NewCluster("c1")},
}

// records holds a record of every kind with the value that it stands for.
var records = map[string]struct {
	bytes []byte
	want  wire.Record
}{
	"globals": {
		wire.AppendGlobals(nil, wire.Globals{ClusterID: "c", Level: 1, TermStart: 2, LastTime: 3, DeletedStamp: 4}),
		wire.Record{Kind: wire.RecordGlobals, Globals: wire.Globals{ClusterID: "c", Level: 1, TermStart: 2, LastTime: 3, DeletedStamp: 4}},
	},
	"switches": {
		wire.AppendSwitches(nil, registry.DefaultSwitches()),
		wire.Record{Kind: wire.RecordSwitches, Switches: registry.DefaultSwitches().Pairs()},
	},
	"known": {wire.AppendKnown(nil, "dev"), wire.Record{Kind: wire.RecordKnown, Known: "dev"}},
	"namespace": {
		wire.AppendNamespace(nil, registry.Namespace{ID: "dev", Name: "Dev", Description: "d"}),
		wire.Record{Kind: wire.RecordNamespace, Namespace: registry.Namespace{ID: "dev", Name: "Dev", Description: "d"}},
	},
	"service": {
		wire.AppendService(nil, &sampleServiceRecord),
		wire.Record{Kind: wire.RecordService, Service: &sampleServiceRecord},
	},
	"instance": {
		wire.AppendInstance(nil, sampleService, &sampleInstance),
		wire.Record{Kind: wire.RecordInstance, Key: sampleService, Instance: &sampleInstance},
	},
	"persistent": {
		wire.AppendInstance(nil, sampleService, &registry.Instance{}),
		wire.Record{Kind: wire.RecordInstance, Key: sampleService, Instance: &registry.Instance{}},
	},
	"user": {
		wire.AppendUser(nil, sampleUser), wire.Record{Kind: wire.RecordUser, User: sampleUser},
	},
	"binding": {
		wire.AppendBinding(nil, sampleBinding), wire.Record{Kind: wire.RecordBinding, Binding: sampleBinding},
	},
	"permission": {
		wire.AppendPermission(nil, samplePermission), wire.Record{Kind: wire.RecordPermission, Permission: samplePermission},
	},
	"auth key": {wire.AppendAuthKey(nil, "k"), wire.Record{Kind: wire.RecordAuthKey, AuthKey: "k"}},
	"tombstone": {
		wire.AppendTombstone(nil, sampleKey, 77),
		wire.Record{Kind: wire.RecordTombstone, Tombstone: sampleKey, Until: 77},
	},
}

func TestRecord_RoundTripAndGeneratedCode(t *testing.T) {
	for name, tc := range records {
		got, err := wire.DecodeRecord(string(tc.bytes))
		if tc.want.Switches != nil && reflect.DeepEqual([]registry.Pair(got.Switches), tc.want.Switches) {
			got.Switches, tc.want.Switches = nil, nil
		}
		if err != nil || !reflect.DeepEqual(got, tc.want) {
			t.Errorf("%s: %+v, %v, want %+v", name, got, err, tc.want)
		}
		var m Record
		if err := proto.Unmarshal(tc.bytes, &m); err != nil || unknown(m.ProtoReflect()) {
			t.Errorf("%s: generated code reads %v, %v", name, &m, err)
		}
		if again, err := proto.Marshal(&m); err != nil || !bytes.Equal(again, tc.bytes) {
			t.Errorf("%s: generated code writes %x, %v, want %x", name, again, err, tc.bytes)
		}
	}
}

func TestDecodeRecord_Refusals(t *testing.T) {
	for name, tc := range map[string]struct{ hex, want string }{
		"empty":             {"", "cut off"},
		"new kind":          {"6200", "unknown kind"},
		"trailing":          {"1a003a00", "more than one kind"},
		"new field":         {"1a021001", "field 2"},
		"not a message":     {"1801", "is not a message"},
		"lease of nothing":  {"32041a003a00", "has no number"},
		"clusters unsorted": {"2a0c5a040a0262315a040a026131", "ascending"},
	} {
		b, err := hex.DecodeString(tc.hex)
		if err != nil {
			t.Fatal(name, err)
		}
		r, err := wire.DecodeRecord(string(b))
		var e *wire.Error
		if !errors.As(err, &e) || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %+v, %v, want an error with %q", name, r, err, tc.want)
		}
	}
}

func TestSnapshotFrames_RoundTripAndGeneratedCode(t *testing.T) {
	header := wire.SnapshotHeader{ClusterID: "c", Index: 1, Term: 2, Level: 3, Time: 4}
	b := wire.AppendSnapshotHeader(nil, header)
	if got, err := wire.DecodeSnapshotHeader(b); err != nil || got != header {
		t.Errorf("%+v, %v, want %+v", got, err, header)
	}
	var h Header
	if err := proto.Unmarshal(b, &h); err != nil || unknown(h.ProtoReflect()) || h.GetTimeMs() != 4 {
		t.Errorf("%v, %v", &h, err)
	}
	trailer := wire.SnapshotTrailer{Records: 9, Digest: registry.Digest{15: 1}}
	b = wire.AppendSnapshotTrailer(nil, trailer)
	if got, err := wire.DecodeSnapshotTrailer(b); err != nil || got != trailer {
		t.Errorf("%+v, %v, want %+v", got, err, trailer)
	}
	var tr Trailer
	if err := proto.Unmarshal(b, &tr); err != nil || unknown(tr.ProtoReflect()) || tr.GetRecords() != 9 {
		t.Errorf("%v, %v", &tr, err)
	}
	if _, err := wire.DecodeSnapshotHeader([]byte{0x30, 1}); err == nil {
		t.Error("a header with an unknown field was read")
	}
	if _, err := wire.DecodeSnapshotTrailer([]byte{0x08, 1}); err == nil {
		t.Error("a trailer without a digest was read")
	}
}

func TestNextRecord(t *testing.T) {
	block := wire.AppendRecord(wire.AppendRecord(nil, []byte("one")), bytes.Repeat([]byte("x"), 300))
	one, rest, err := wire.NextRecord(string(block))
	if err != nil || one != "one" {
		t.Fatal(one, err)
	}
	two, rest, err := wire.NextRecord(rest)
	if err != nil || len(two) != 300 || rest != "" {
		t.Fatal(len(two), len(rest), err)
	}
	for _, bad := range []string{"", "\x05abc", "\x80\x00", "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"} {
		if _, _, err := wire.NextRecord(bad); err == nil {
			t.Errorf("%q was cut", bad)
		}
	}
}

func FuzzDecodeRecord(f *testing.F) {
	for _, r := range records {
		f.Add(r.bytes)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := wire.DecodeRecord(string(b))
		if err != nil {
			return
		}
		var again []byte
		switch r.Kind {
		case wire.RecordGlobals:
			again = wire.AppendGlobals(nil, r.Globals)
		case wire.RecordKnown:
			again = wire.AppendKnown(nil, r.Known)
		case wire.RecordNamespace:
			again = wire.AppendNamespace(nil, r.Namespace)
		case wire.RecordService:
			again = wire.AppendService(nil, r.Service)
		case wire.RecordInstance:
			again = wire.AppendInstance(nil, r.Key, r.Instance)
		case wire.RecordUser:
			again = wire.AppendUser(nil, r.User)
		case wire.RecordBinding:
			again = wire.AppendBinding(nil, r.Binding)
		case wire.RecordPermission:
			again = wire.AppendPermission(nil, r.Permission)
		case wire.RecordAuthKey:
			again = wire.AppendAuthKey(nil, r.AuthKey)
		case wire.RecordTombstone:
			again = wire.AppendTombstone(nil, r.Tombstone, r.Until)
		default:
			return // the pairs of switches are checked by Switches.With
		}
		if !bytes.Equal(again, b) {
			t.Fatalf("%x decodes to %+v, which encodes as %x", b, r, again)
		}
	})
}
