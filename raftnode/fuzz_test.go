package raftnode

import (
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/rollcall-io/rollcall/internal/wire"
	"github.com/rollcall-io/rollcall/internal/wire/peerpb"
)

// FuzzForwardedBatch feeds a forwarded call's bytes to what the leader does with them
// before anything is proposed: either an error, or commands that can be read again.
func FuzzForwardedBatch(f *testing.F) {
	encoded, err := wire.EncodeCommand(instance(1))
	if err != nil {
		f.Fatal(err)
	}
	for _, req := range []*peerpb.ProposeRequest{
		{},
		{Commands: encoded, Lengths: []uint32{uint32(len(encoded))}, RemainingMs: []uint32{1000}},
		{Commands: append(encoded, encoded...), Lengths: []uint32{uint32(len(encoded)), uint32(len(encoded))}, RemainingMs: []uint32{0, 1<<32 - 1}},
		{Commands: encoded, Lengths: []uint32{1 << 31, 1 << 31}, RemainingMs: []uint32{1, 1}},
	} {
		b, err := proto.Marshal(req)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		req := &peerpb.ProposeRequest{}
		if proto.Unmarshal(b, req) != nil {
			return
		}
		commands, err := decodeBatch(req, time.Now())
		if err != nil {
			return
		}
		for _, c := range commands {
			if c.cmd == nil || len(c.encoded) == 0 {
				t.Fatalf("an empty command of %x", b)
			}
		}
	})
}
