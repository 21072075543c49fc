package wire_test

import (
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/rollcall-io/rollcall/internal/wire"
)

// The generated sub-benchmarks are why this package writes and reads by hand.
func BenchmarkEncodeRegister(b *testing.B) {
	c := samples["register"]
	b.Run("hand", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := wire.EncodeCommand(c); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("generated", func(b *testing.B) {
		var m Command
		if err := proto.Unmarshal(encode(b, c), &m); err != nil {
			b.Fatal(err)
		}
		b.ReportAllocs()
		for b.Loop() {
			if _, err := proto.Marshal(&m); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkDecodeRegister(b *testing.B) {
	packed := encode(b, samples["register"])
	b.ReportMetric(float64(len(packed)), "bytes")
	b.Run("hand", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := wire.DecodeCommand(packed); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("generated", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			var m Command
			if err := proto.Unmarshal(packed, &m); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkPackEntry(b *testing.B) {
	commands := make([][]byte, 256)
	for i := range commands {
		commands[i] = encode(b, samples["register"])
	}
	b.ReportAllocs()
	for b.Loop() {
		wire.PackEntry("n1", 7, 1_800_000_000_000, commands)
	}
}
