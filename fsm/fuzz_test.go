package fsm

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/rollcall-io/rollcall/internal/wire"
	"github.com/rollcall-io/rollcall/registry"
)

func FuzzReadSnapshot(f *testing.F) {
	n := newNode(f)
	f.Add(save(f, n.FSM))
	file, err := os.ReadFile(filepath.Join("testdata", "snapshot-v1.bin"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(file)
	f.Fuzz(func(t *testing.T, file []byte) {
		b, err := readSnapshot(bytes.NewReader(file))
		if err != nil {
			return
		}
		m := newFSM(t, Options{})
		m.state, m.tx.state = b.state, b.state
		if again := recount(t, m); again != b.state.sum.digest() {
			t.Fatalf("digest %x, read again %x", b.state.sum.digest(), again)
		}
	})
}

// FuzzRecords reaches what stands behind checksums and compression.
func FuzzRecords(f *testing.F) {
	b := func(records ...[]byte) []byte {
		var block []byte
		for _, r := range records {
			block = wire.AppendRecord(block, r)
		}
		return block
	}
	globals := wire.AppendGlobals(nil, wire.Globals{Level: 1})
	switches := wire.AppendSwitches(nil, registry.DefaultSwitches())
	f.Add(b(globals, switches))
	f.Add(b(globals, switches, wire.AppendKnown(nil, "public"), wire.AppendService(nil, &registry.Service{Key: key("a")}),
		wire.AppendInstance(nil, key("a"), &registry.Instance{Spec: spec("x", 1), Lease: 1})))
	f.Fuzz(func(t *testing.T, block []byte) {
		read := newBuilder(wire.SnapshotHeader{Level: 1})
		if err := read.block(block); err != nil {
			return
		}
		trailer := wire.SnapshotTrailer{Records: read.records, Digest: read.state.sum.digest()}
		if err := read.finish(trailer); err != nil {
			return
		}
		m := newFSM(t, Options{})
		m.state, m.tx.state = read.state, read.state
		again, s := recount(t, m), newScript(t)
		if again != trailer.Digest {
			t.Fatalf("digest %x, read again %x", trailer.Digest, again)
		}
		m.Apply(s.entry(register("a", "x", 1), register("b", "x", 1)))
		recount(t, m)
	})
}

// FuzzApply gives arbitrary bytes as an entry: refused whole, or applied like on any
// other node.
func FuzzApply(f *testing.F) {
	s := newScript(f)
	f.Add(s.entry(register("orders", "10.0.0.1", 80), registry.Deregister{Key: spec("10.0.0.1", 80).In(key("orders"))}).Data)
	f.Add(s.entry(registry.ServiceCreate{Key: key("orders")}, registry.NamespaceDelete{ID: "public"}).Data)
	f.Fuzz(func(t *testing.T, data []byte) {
		var fatal error
		n := &node{newFSM(t, Options{Fatal: func(err error) { fatal = err }}), newScript(t)}
		n.ok(register("orders", "10.0.0.1", 80))
		before := contents(t, n.FSM)
		l := n.entry()
		l.Data = data
		n.Apply(l)
		if fatal != nil {
			if contents(t, n.FSM) != before {
				t.Fatalf("%v, and the state changed", fatal)
			}
			return
		}
		if _, d := n.Digest(); recount(t, n.FSM) != d {
			t.Fatal("the digest kept is not that of the state")
		}
	})
}
