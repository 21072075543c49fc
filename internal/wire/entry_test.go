package wire_test

import (
	"bytes"
	"encoding/hex"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/rollcall-io/rollcall/internal/wire"
	"github.com/rollcall-io/rollcall/registry"
)

func sampleEntry(t testing.TB) (registry.Entry, []byte) {
	t.Helper()
	want := registry.Entry{Node: "n1", Term: 7, Time: 1_800_000_000_123}
	var encoded [][]byte
	names := make([]string, 0, len(samples))
	for name := range samples {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		want.Commands = append(want.Commands, samples[name])
		encoded = append(encoded, encode(t, samples[name]))
	}
	return want, wire.PackEntry(want.Node, want.Term, want.Time, encoded)
}

func TestEntry_Golden(t *testing.T) {
	want, packed := sampleEntry(t)
	path := filepath.Join("testdata", "entry-v1.hex")
	if *update {
		if err := os.WriteFile(path, []byte(hex.EncodeToString(packed)+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	golden, err := hex.DecodeString(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(packed, golden) {
		t.Errorf("packed as %x, want %x", packed, golden)
	}
	got, err := wire.DecodeEntry(golden)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("decoded as %+v, %v, want %+v", got, err, want)
	}
}

func TestEntry_GeneratedCodeAgrees(t *testing.T) {
	_, packed := sampleEntry(t)
	var m Entry
	if err := proto.Unmarshal(packed, &m); err != nil {
		t.Fatal(err)
	}
	if unknown(m.ProtoReflect()) || len(m.Commands) != len(samples) {
		t.Errorf("unknown fields or commands missing in %v", &m)
	}
	if again, err := proto.Marshal(&m); err != nil || !bytes.Equal(again, packed) {
		t.Errorf("generated code writes %x, %v, want %x", again, err, packed)
	}
}

func TestDecodeEntry_Refusals(t *testing.T) {
	_, packed := sampleEntry(t)
	for name, tc := range map[string]struct {
		b    []byte
		want string
	}{
		"empty":            {nil, "version 0"},
		"newer frame":      {[]byte{0x08, 2}, "version 2"},
		"unknown field":    {[]byte{0x08, 1, 0x30, 1}, "field 6"},
		"cut off":          {packed[:len(packed)-1], "announced"},
		"trailing":         {append(slices.Clone(packed), 0), "unknown field"},
		"unknown command":  {wire.PackEntry("n", 1, 1, [][]byte{{0x08, 1, 0x8a, 2, 0}}), "unknown kind"},
		"field in command": {wire.PackEntry("n", 1, 1, [][]byte{{0x08, 1, 0xc2, 1, 2, 0x18, 1}}), "no_op, field 3"},
	} {
		if _, err := wire.DecodeEntry(tc.b); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want an error with %q", name, err, tc.want)
		}
	}
}

// What a decoder allocates is bounded by the size of its input, whatever lengths and
// counts the input claims.
func TestDecodeEntry_BoundedAllocation(t *testing.T) {
	hostile := append([]byte{0x08, 1}, bytes.Repeat([]byte{0x2a, 0}, 1000)...)
	result := testing.Benchmark(func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := wire.DecodeEntry(hostile); err == nil {
				b.Fatal("decoded")
			}
		}
	})
	if got, limit := result.AllocedBytesPerOp(), int64(64*len(hostile)); got > limit {
		t.Errorf("%d bytes allocated for an input of %d, limit %d", got, len(hostile), limit)
	}
}

func FuzzDecodeEntry(f *testing.F) {
	_, packed := sampleEntry(f)
	f.Add(packed)
	f.Add(wire.PackEntry("", 0, -1, nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		entry, err := wire.DecodeEntry(b)
		if err != nil {
			return
		}
		var commands [][]byte
		for _, c := range entry.Commands {
			commands = append(commands, encode(t, c))
		}
		if again := wire.PackEntry(entry.Node, entry.Term, entry.Time, commands); !bytes.Equal(again, b) {
			t.Fatalf("%x is packed again as %x", b, again)
		}
	})
}
