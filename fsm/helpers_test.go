package fsm

import (
	"bytes"
	"io"
	"testing"

	"github.com/hashicorp/raft"
	"go.uber.org/goleak"

	"github.com/rollcall-io/rollcall/internal/wire"
	"github.com/rollcall-io/rollcall/registry"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const second = int64(1000)

// script makes the entries of a log, one second of entry time after another.
type script struct {
	tb    testing.TB
	index uint64
	term  uint64
	time  int64
}

func newScript(tb testing.TB) *script { return &script{tb: tb, index: 10, term: 3, time: 1_000_000} }

// entry is the next log entry with some commands.
func (s *script) entry(commands ...registry.Command) *raft.Log {
	s.tb.Helper()
	s.index++
	s.time += second
	encoded := make([][]byte, len(commands))
	for i, c := range commands {
		b, err := wire.EncodeCommand(c)
		if err != nil {
			s.tb.Fatalf("encode %+v: %v", c, err)
		}
		encoded[i] = b
	}
	return &raft.Log{
		Index: s.index, Term: s.term, Type: raft.LogCommand,
		Data: wire.PackEntry("n1", s.term, s.time, encoded),
	}
}

// configuration is the next log entry, of Raft's own.
func (s *script) configuration() *raft.Log {
	s.index++
	return &raft.Log{Index: s.index, Term: s.term, Type: raft.LogConfiguration, Data: []byte("members")}
}

func newFSM(tb testing.TB, o Options) *FSM {
	tb.Helper()
	f := New(o)
	tb.Cleanup(f.Close)
	return f
}

// node is an FSM with a script that feeds it.
type node struct {
	*FSM
	*script
}

func newNode(tb testing.TB) *node {
	tb.Helper()
	return &node{newFSM(tb, Options{}), newScript(tb)}
}

// do applies one entry with one command.
func (n *node) do(c registry.Command) registry.Result {
	n.tb.Helper()
	return n.Apply(n.entry(c)).([]registry.Result)[0]
}

// ok is do for a command that must be carried out.
func (n *node) ok(c registry.Command) registry.Result {
	n.tb.Helper()
	r := n.do(c)
	if r.Err != nil {
		n.tb.Fatalf("%+v: %v", c, r.Err)
	}
	return r
}

// refused is do for a command that must be refused with an error that is want, and
// must leave the state as it is.
func (n *node) refused(c registry.Command, want error) *registry.Error {
	n.tb.Helper()
	n.ok(registry.NoOp{})
	before := contents(n.tb, n.FSM)
	n.time -= second // at the same entry time, so that no tombstone ends in between
	r := n.do(c)
	if r.Err == nil || !r.Err.Is(want) {
		n.tb.Fatalf("%+v: refused with %v, want %v", c, r.Err, want)
	}
	if after := contents(n.tb, n.FSM); after != before {
		n.tb.Fatalf("%+v was refused and changed\n%s\ninto\n%s", c, before, after)
	}
	return r.Err
}

func key(name string) registry.ServiceKey {
	return registry.NewServiceKey("", "", name)
}

func spec(ip string, port uint16) registry.Spec {
	return registry.Spec{
		Address:   registry.Address{Cluster: registry.DefaultCluster, IP: ip, Port: port},
		Ephemeral: true, Enabled: true, Healthy: true, Weight: 1, App: "shop",
		Metadata: registry.Metadata{{Key: "version", Value: "1"}},
	}
}

func register(service, ip string, port uint16) registry.Register {
	return registry.Register{Service: key(service), Spec: spec(ip, port)}
}

// sink is a raft.SnapshotSink in memory.
type sink struct {
	bytes.Buffer
	closed, cancelled bool
}

func (s *sink) ID() string    { return "test" }
func (s *sink) Cancel() error { s.cancelled = true; return nil }
func (s *sink) Close() error  { s.closed = true; return nil }

// save is the snapshot file of an FSM's present state.
func save(tb testing.TB, f *FSM) []byte {
	tb.Helper()
	snap, err := f.Snapshot()
	if err != nil {
		tb.Fatal(err)
	}
	defer snap.Release()
	var s sink
	if err := snap.Persist(&s); err != nil {
		tb.Fatal(err)
	}
	if !s.closed || s.cancelled {
		tb.Fatalf("sink closed %t, cancelled %t", s.closed, s.cancelled)
	}
	return s.Bytes()
}

// load restores a snapshot file.
func load(tb testing.TB, f *FSM, file []byte) {
	tb.Helper()
	if err := f.Restore(io.NopCloser(bytes.NewReader(file))); err != nil {
		tb.Fatal(err)
	}
}

// recount works the digest out from nothing.
func recount(tb testing.TB, f *FSM) registry.Digest {
	tb.Helper()
	b, err := readSnapshot(bytes.NewReader(save(tb, f)))
	if err != nil {
		tb.Fatal(err)
	}
	return b.state.sum.digest()
}
