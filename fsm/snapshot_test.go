package fsm

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/rollcall-io/rollcall/internal/wire"
	"github.com/rollcall-io/rollcall/registry"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// rich is a node with at least one of everything that a snapshot can hold.
func rich(t testing.TB) *node {
	t.Helper()
	n := newNode(t)
	n.ok(registry.ClusterInit{ClusterID: "0123456789abcdef"})
	n.ok(registry.TermStart{Term: n.term, Node: "n1", Level: 1})
	n.ok(registry.NamespaceCreate{Namespace: registry.Namespace{ID: "dev", Name: "Dev", Description: "for tests"}})
	n.ok(registry.SwitchSet{Entry: "clientBeatInterval", Value: "6000"})
	n.ok(registry.ServiceCreate{Key: key("by-hand"), Spec: registry.ServiceSpec{
		ProtectThreshold: 0.25, Metadata: registry.Metadata{{Key: "owner", Value: "ops"}},
		Selector: registry.Selector{Type: registry.SelectorLabel, Expression: "a = b"},
	}})
	c := registry.NewCluster("c1")
	c.Checker = registry.Checker{Type: registry.CheckHTTP, Path: "/up", ExpectedCode: 200}
	n.ok(registry.ClusterUpdate{Key: key("by-hand"), Cluster: c})
	for _, ip := range []string{"10.0.0.1", "10.0.0.2", "10.0.0.3"} {
		n.ok(register("orders", ip, 8080))
	}
	n.ok(registry.Deregister{Key: spec("10.0.0.2", 8080).In(key("orders"))})
	numbered := register("orders", "10.0.0.4", 0)
	numbered.Spec.Ephemeral, numbered.Spec.Healthy = false, false
	numbered.Spec.Metadata = registry.Metadata{{Key: registry.KeyIDGenerator, Value: "snowflake"}}
	numbered.Service.Namespace = "dev"
	n.ok(numbered)
	n.ok(register("gone", "10.0.0.1", 1))
	n.ok(registry.Deregister{Key: spec("10.0.0.1", 1).In(key("gone"))})
	n.ok(registry.ServiceDelete{Key: key("gone")})
	n.ok(registry.AuthInit{Key: testAuthKey, Admin: testUser("admin")})
	n.ok(registry.UserCreate{User: testUser("alice")})
	n.ok(registry.RoleAdd{Binding: registry.RoleBinding{Role: "ops", User: "alice"}})
	n.ok(registry.PermissionAdd{Permission: registry.Permission{Role: "ops", Resource: "dev:*:*", Action: "rw"}})
	n.Apply(n.configuration())
	return n
}

// The file is the format as it was released: it must be readable for good.
func TestRestore_Golden(t *testing.T) {
	n := rich(t)
	path := filepath.Join("testdata", "snapshot-v1.bin")
	if *update {
		if err := os.WriteFile(path, save(t, n.FSM), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	f := newFSM(t, Options{})
	load(t, f, file)
	if got, want := contents(t, f), contents(t, n.FSM); got != want {
		t.Errorf("restored\n%s\nwant\n%s", got, want)
	}
	index, d := f.Digest()
	if wantIndex, want := n.Digest(); index != wantIndex || d != want {
		t.Errorf("digest %x at %d, want %x at %d", d, index, want, wantIndex)
	}
}

// A bad file is an error that says what is wrong, and the old state stays.
func TestRestore_BadFiles(t *testing.T) {
	file := save(t, rich(t).FSM)
	n := newNode(t)
	n.ok(register("kept", "10.0.0.1", 80))
	before := contents(t, n.FSM)
	refuse := func(name, want string, bad []byte) {
		t.Helper()
		err := n.Restore(io.NopCloser(bytes.NewReader(bad)))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want an error with %q", name, err, want)
		}
		if contents(t, n.FSM) != before {
			t.Fatalf("%s: state changed", name)
		}
	}
	refuse("empty", "unexpected EOF", nil)
	refuse("other file", "not a snapshot", bytes.Repeat([]byte("x"), 99))
	refuse("newer format", "version 2", append([]byte("ROLLCALL\x00\x00\x00\x02"), file[12:]...))
	refuse("trailing", "follow the trailer", append(bytes.Clone(file), 0))
	for cut := range len(file) {
		refuse(fmt.Sprintf("cut at %d", cut), "", file[:cut])
	}
	for at := range file {
		bad := bytes.Clone(file)
		bad[at] ^= 0x20
		refuse(fmt.Sprintf("flipped byte %d", at), "", bad)
	}
}

// forge writes a file with good checksums and digest out of any records.
func forge(t testing.TB, h wire.SnapshotHeader, records ...[]byte) []byte {
	t.Helper()
	var file bytes.Buffer
	w, err := newSnapshotWriter(&file, h)
	if err != nil {
		t.Fatal(err)
	}
	var total sum
	for _, r := range records {
		total.add(hashOf(r))
		w.record(append(w.scratch(), r...))
	}
	if err := w.finish(total.digest()); err != nil {
		t.Fatal(err)
	}
	return file.Bytes()
}

func TestRestore_ContradictoryRecords(t *testing.T) {
	h := wire.SnapshotHeader{ClusterID: "c", Index: 9, Term: 2, Level: 1, Time: 5}
	globals := wire.AppendGlobals(nil, wire.Globals{ClusterID: "c", Level: 1, LastTime: 5})
	switches := wire.AppendSwitches(nil, registry.DefaultSwitches())
	known := wire.AppendKnown(nil, "public")
	service := func(name string) []byte {
		return wire.AppendService(nil, &registry.Service{Key: key(name), Clusters: []registry.Cluster{registry.NewCluster("DEFAULT")}})
	}
	instance := func(service, ip string, lease uint32) []byte {
		return wire.AppendInstance(nil, key(service), &registry.Instance{Spec: spec(ip, 80), Lease: lease})
	}
	tomb := wire.AppendTombstone(nil, spec("x", 80).In(key("a")), 9)
	record := wire.AppendNamespace(nil, registry.Namespace{ID: "n"})
	for name, tc := range map[string]struct {
		want    string
		records [][]byte
	}{
		"none":              {"missing", nil},
		"no switches":       {"follows kind 1", [][]byte{globals, known}},
		"globals twice":     {"follows kind 1", [][]byte{globals, globals}},
		"header differs":    {"contradict", [][]byte{wire.AppendGlobals(nil, wire.Globals{ClusterID: "d", Level: 1, LastTime: 5})}},
		"namespace twice":   {"twice", [][]byte{globals, switches, known, known}},
		"record twice":      {"twice", [][]byte{globals, switches, record, record}},
		"unknown namespace": {"not known", [][]byte{globals, switches, service("a")}},
		"service twice":     {"twice", [][]byte{globals, switches, known, service("a"), service("a")}},
		"lost instance":     {"does not follow", [][]byte{globals, switches, known, service("a"), instance("b", "x", 1)}},
		"order":             {"order", [][]byte{globals, switches, known, service("a"), instance("a", "y", 1), instance("a", "x", 2)}},
		"same instance":     {"order", [][]byte{globals, switches, known, service("a"), instance("a", "x", 1), instance("a", "x", 2)}},
		"no lease":          {"lease is 0", [][]byte{globals, switches, known, service("a"), instance("a", "x", 0)}},
		"lease twice":       {"keeps both", [][]byte{globals, switches, known, service("a"), instance("a", "x", 1), instance("a", "y", 1)}},
		"huge lease":        {"above the limit", [][]byte{globals, switches, known, service("a"), instance("a", "x", 1<<31)}},
		"tombstone twice":   {"twice", [][]byte{globals, switches, tomb, tomb}},
		"back to services":  {"follows kind 7", [][]byte{globals, switches, known, tomb, service("a")}},
		"newer record":      {"unknown kind", [][]byte{globals, switches, {0x62, 0}}},
	} {
		_, err := readSnapshot(bytes.NewReader(forge(t, h, tc.records...)))
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want an error with %q", name, err, tc.want)
		}
	}
	b := newBuilder(h)
	if err := b.block(wire.AppendRecord(wire.AppendRecord(nil, globals), switches)); err != nil {
		t.Fatal(err)
	}
	if err := b.finish(wire.SnapshotTrailer{Records: 3, Digest: b.state.sum.digest()}); err == nil {
		t.Error("a file that lacks a record was read")
	}
	h.Level = 2
	if _, err := readSnapshot(bytes.NewReader(forge(t, h))); err == nil || !strings.Contains(err.Error(), "feature level 2") {
		t.Errorf("level of a newer build: %v", err)
	}
}

type brokenSink struct {
	sink
	onClose error
}

func (s *brokenSink) Write([]byte) (int, error) { return 0, errors.New("disk is gone") }
func (s *brokenSink) Close() error              { s.closed = true; return s.onClose }

func TestPersist_CancelsOnAnError(t *testing.T) {
	snap, err := rich(t).Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	s := &brokenSink{}
	if err := snap.Persist(s); err == nil || !s.cancelled || s.closed {
		t.Errorf("%v, cancelled %t, closed %t", err, s.cancelled, s.closed)
	}
}

// Persisting and reading go on while Apply does.
func TestSnapshot_BesideApply(t *testing.T) {
	f, s := fleet(t, 3000)
	want, stop := save(t, f), make(chan struct{})
	snap, err := f.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	group.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				for _, svc := range f.Services("public") {
					for _, in := range svc.Instances() {
						if in.Weight < 1 {
							t.Error("an instance that was never registered")
						}
					}
				}
			}
		}
	})
	group.Go(func() {
		for i := range 10 {
			f.ApplyBatch(packed(s, 0, 3000, func(n int) registry.Command {
				c := benchInstance(n)
				if n%7 == i%7 {
					return registry.Deregister{Key: c.Spec.In(c.Service)}
				}
				c.Spec.Weight = float64(i + 2)
				return c
			}))
		}
	})
	var got sink
	if err := snap.Persist(&got); err != nil {
		t.Fatal(err)
	}
	close(stop)
	group.Wait()
	snap.Release()
	if !bytes.Equal(got.Bytes(), want) {
		t.Errorf("the snapshot moved with the state: %d bytes, want %d", got.Len(), len(want))
	}
	save(t, f)
}
