package wire_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"flag"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/rollcall-io/rollcall/internal/wire"
	"github.com/rollcall-io/rollcall/registry"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func encode(t testing.TB, c registry.Command) []byte {
	t.Helper()
	b, err := wire.EncodeCommand(c)
	if err != nil {
		t.Fatalf("encode %T: %v", c, err)
	}
	return b
}

// The files are the format as it was released: a change that breaks one breaks logs.
func TestCommand_Golden(t *testing.T) {
	for name, c := range samples {
		path := filepath.Join("testdata", "command-v1", name+".hex")
		got := hex.EncodeToString(encode(t, c)) + "\n"
		if *update {
			if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if got != string(want) {
			t.Errorf("%s: encoded as %s want %s", name, got, want)
		}
		b, err := hex.DecodeString(strings.TrimSpace(string(want)))
		if err != nil {
			t.Fatal(err)
		}
		back, err := wire.DecodeCommand(b)
		if err != nil || !reflect.DeepEqual(back, c) {
			t.Errorf("%s: decoded as %+v, %v, want %+v", name, back, err, c)
		}
	}
}

// The generated code reads what the hand-written code writes, knows every field of it
// and writes the same bytes.
func TestCommand_GeneratedCodeAgrees(t *testing.T) {
	for name, c := range samples {
		b := encode(t, c)
		var m Command
		if err := (proto.UnmarshalOptions{}).Unmarshal(b, &m); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if unknown(m.ProtoReflect()) {
			t.Errorf("%s: unknown fields in %v", name, &m)
		}
		again, err := proto.MarshalOptions{Deterministic: true}.Marshal(&m)
		if err != nil || !bytes.Equal(again, b) {
			t.Errorf("%s: generated code writes %x, %v, want %x", name, again, err, b)
		}
	}
}

func TestCommand_EveryKindHasASample(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range samples {
		seen[wire.KindOf(c).String()] = true
	}
	for k := wire.KindRegister; k < wire.KindEnd; k++ {
		if !seen[k.String()] {
			t.Errorf("no sample of %s", k)
		}
	}
}

func TestEncodeCommand_Refusals(t *testing.T) {
	bad := string([]byte{0xff})
	for name, c := range map[string]registry.Command{
		"text":     registry.NamespaceDelete{ID: bad},
		"metadata": registry.MetadataBatch{Metadata: registry.Metadata{{Key: "b"}, {Key: "a"}}},
		"repeated": registry.MetadataBatch{Metadata: registry.Metadata{{Key: "a"}, {Key: "a"}}},
		"kind":     registry.Deregister{Kind: 3},
		"code":     registry.ClusterUpdate{Cluster: registry.Cluster{Checker: registry.Checker{ExpectedCode: -1}}},
		"size":     registry.NamespaceDelete{ID: strings.Repeat("a", wire.MaxCommand)},
	} {
		if b, err := wire.EncodeCommand(c); !errors.Is(err, registry.ErrInvalid) {
			t.Errorf("%s: encoded as %d bytes, %v", name, len(b), err)
		}
	}
	if _, err := wire.EncodeCommand(nil); err == nil {
		t.Error("nil was encoded")
	}
}

func TestDecodeCommand_Refusals(t *testing.T) {
	for name, tc := range map[string]struct{ hex, want string }{
		"empty":              {"", "cut off"},
		"no kind":            {"0801", "cut off"},
		"no version":         {"c20100", "version 0"},
		"new version":        {"0802c20100", "version 2"},
		"new kind":           {"08018a0200", "field 33"},
		"session":            {"0801120161c20100", "field 2"},
		"trailing":           {"0801c201001801", "more than one kind"},
		"unknown nested":     {"0801ba010410011801", "field 2"},
		"zero spelled out":   {"0801ba01020800", "not in 1.."},
		"long varint":        {"0801ba0103088100", "shortest"},
		"wrong wire type":    {"0801c0010100", "is not a message"},
		"length beyond":      {"0801ba017f08", "announced"},
		"spec missing":       {"080122030a0161", "is missing"},
		"text is not utf-8":  {"08019a01030a01ff", "UTF-8"},
		"metadata unordered": {"08014210320412001200", "announced"},
		"short digest":       {"0801b201050801120101", "16 bytes"},
	} {
		b, err := hex.DecodeString(tc.hex)
		if err != nil {
			t.Fatal(name, err)
		}
		c, err := wire.DecodeCommand(b)
		var e *wire.Error
		if !errors.As(err, &e) || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: decoded as %+v, %v; want an error with %q", name, c, err, tc.want)
		}
	}
}

func TestCommand_FloatsKeepTheirBits(t *testing.T) {
	for _, w := range []float64{math.Inf(1), math.Copysign(0, -1), math.NaN(), math.SmallestNonzeroFloat64} {
		c, err := wire.DecodeCommand(encode(t, registry.Register{Spec: registry.Spec{Weight: w}}))
		if err != nil {
			t.Fatal(err)
		}
		if got := c.(registry.Register).Spec.Weight; math.Float64bits(got) != math.Float64bits(w) {
			t.Errorf("weight %v came back as %v", w, got)
		}
	}
}

func FuzzDecodeCommand(f *testing.F) {
	for _, c := range samples {
		f.Add(encode(f, c))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := wire.DecodeCommand(b)
		if err != nil {
			return
		}
		if len(b) > wire.MaxCommand {
			return
		}
		if again := encode(t, c); !bytes.Equal(again, b) {
			t.Fatalf("%x decodes to %+v, which encodes as %x", b, c, again)
		}
	})
}

func TestCommand_Allocations(t *testing.T) {
	c := samples["register"]
	b := encode(t, c)
	if got := testing.AllocsPerRun(100, func() { _, _ = wire.EncodeCommand(c) }); got > 1 {
		t.Errorf("encoding a registration: %v allocations, want 1", got)
	}
	// One copy of the text, the metadata, the spec of the command and its interface.
	if got := testing.AllocsPerRun(100, func() { _, _ = wire.DecodeCommand(b) }); got > 4 {
		t.Errorf("decoding a registration: %v allocations, want at most 4", got)
	}
}
