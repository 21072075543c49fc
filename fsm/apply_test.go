package fsm

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/hashicorp/raft"

	"github.com/rollcall-io/rollcall/registry"
)

func TestRegister_KeepsIDAndLeaseOfAnInstance(t *testing.T) {
	n := newNode(t)
	c := register("orders", "10.0.0.1", 80)
	c.Spec.Metadata = registry.NewMetadata([]registry.Pair{{Key: registry.KeyIDGenerator, Value: "Snowflake"}})
	n.ok(c)
	before := n.Instance(c.Spec.In(c.Service))
	revision := n.Service(c.Service).Revision

	if r := n.ok(c); r.Changed || n.Service(c.Service).Revision != revision {
		t.Errorf("identical registration: changed %t, revision %d to %d", r.Changed, revision, n.Service(c.Service).Revision)
	}
	same := n.Instance(c.Spec.In(c.Service))
	if same.Generation == before.Generation || same.Grant != same.Generation || same.Lease != before.Lease {
		t.Errorf("generation, grant, lease: %+v after %+v", same, before)
	}
	c.Spec.Metadata = nil
	c.Spec.Weight = 2
	r := n.ok(c)
	after := n.Instance(c.Spec.In(c.Service))
	if !r.Changed || after.SnowflakeID != 1 || after.Lease != before.Lease || n.Service(c.Service).Revision != r.Index {
		t.Errorf("changed registration: %+v, instance %+v", r, after)
	}
}

func TestRegister_Refusals(t *testing.T) {
	n := newNode(t)
	n.ok(register("orders", "10.0.0.1", 80))
	for name, change := range map[string]func(*registry.Register){
		"service":  func(c *registry.Register) { c.Service.Grouped = "no group" },
		"empty":    func(c *registry.Register) { *c = registry.Register{} },
		"ip":       func(c *registry.Register) { c.Spec.IP = "" },
		"cluster":  func(c *registry.Register) { c.Spec.Cluster = "a b" },
		"nan":      func(c *registry.Register) { c.Spec.Weight = math.NaN() },
		"negative": func(c *registry.Register) { c.Spec.Weight = -1 },
		"timeout": func(c *registry.Register) {
			c.Spec.Metadata = registry.Metadata{{Key: registry.KeyBeatTimeout, Value: "1"}}
		},
		"metadata": func(c *registry.Register) {
			c.Spec.Metadata = registry.Metadata{{Key: "k", Value: strings.Repeat("v", registry.MaxMetadata)}}
		},
	} {
		c := register("orders", "10.0.0.9", 80)
		change(&c)
		if err := n.refused(c, registry.ErrInvalid); err.Field == "" {
			t.Errorf("%s: the refusal %v names no field", name, err)
		}
	}
	c := register("orders", "10.0.0.1", 80)
	c.Spec.Ephemeral = false
	if err := n.refused(c, registry.ErrKindMismatch); !strings.Contains(err.Reason, "as ephemeral") {
		t.Errorf("reason %q does not say which kind is there", err.Reason)
	}
}

func TestRegister_WeightsAreClamped(t *testing.T) {
	n := newNode(t)
	for given, want := range map[float64]float64{0: 0, 0.001: 0.01, 1: 1, 10_001: 10_000, math.Inf(1): 10_000} {
		c := register("orders", "10.0.0.1", 80)
		c.Spec.Weight = given
		n.ok(c)
		if got := n.Instance(c.Spec.In(c.Service)).Weight; got != want {
			t.Errorf("weight %v is stored as %v, want %v", given, got, want)
		}
	}
}

func TestRegister_FullServiceAndTooManyClusters(t *testing.T) {
	n := newNode(t)
	var commands []registry.Command
	for i := range registry.MaxInstances {
		commands = append(commands, register("full", fmt.Sprintf("10.0.%d.%d", i>>8, i&255), 80))
	}
	n.Apply(n.entry(commands...))
	n.refused(register("full", "10.9.9.9", 80), registry.ErrTooManyInstances)
	n.ok(register("full", "10.0.0.0", 80))

	commands = nil
	for i := range registry.MaxClusters {
		c := register("wide", "10.0.0.1", 80)
		c.Spec.Cluster = fmt.Sprintf("c%d", i)
		commands = append(commands, c)
	}
	n.Apply(n.entry(commands...))
	n.refused(register("wide", "10.0.0.2", 80), registry.ErrInvalid)
	n.refused(registry.ClusterUpdate{Key: key("wide"), Cluster: registry.NewCluster("one-more")}, registry.ErrInvalid)
	c := register("wide", "10.0.0.2", 80)
	c.Spec.Cluster = "c7"
	n.ok(c)
}

func TestTombstone_Life(t *testing.T) {
	n := newNode(t)
	c := register("orders", "10.0.0.1", 80) // 5 s of interval, an entry is a second
	k := c.Spec.In(c.Service)
	beat := c
	beat.FromBeat = true

	n.ok(c)
	n.ok(registry.Deregister{Key: k})
	if until, found := n.Tombstone(k); !found || until != n.time+10*second {
		t.Fatalf("tombstone until %d, %t, want %d", until, found, n.time+10*second)
	}
	n.refused(beat, registry.ErrTombstoned)
	n.ok(c)
	if _, found := n.Tombstone(k); found {
		t.Error("a registration left the tombstone")
	}
	n.ok(registry.Deregister{Key: k})
	for range 9 {
		if r := n.do(beat); r.Err == nil {
			t.Fatal("registered by a beat while the tombstone stands")
		}
	}
	n.ok(beat)
	if _, found := n.Tombstone(k); found || len(n.state.tombs.queue) != 0 {
		t.Error("the tombstone is there after its time")
	}
	if r := n.ok(beat); r.Changed {
		t.Error("a beat's registration of what is there changed it")
	}
}

func TestTombstone_NoneForPersistentOrEvicted(t *testing.T) {
	n := newNode(t)
	persistent := register("orders", "10.0.0.1", 80)
	persistent.Spec.Ephemeral = false
	n.ok(persistent)
	n.ok(registry.Deregister{Key: persistent.Spec.In(persistent.Service), Kind: registry.KindPersistent})
	n.ok(register("orders", "10.0.0.2", 80))
	l, _ := n.Lease(1)
	if r := n.ok(registry.EvictBatch{Term: n.term, Items: []registry.LeaseRef{l.LeaseRef}}); !r.Changed || r.Skipped != 0 {
		t.Errorf("eviction: %+v", r)
	}
	if len(n.state.tombs.queue) != 0 || n.Service(key("orders")).Len() != 0 {
		t.Errorf("left:\n%s", contents(t, n.FSM))
	}
}

// The clean-up of marks is bounded for each entry, and a mark that waits for it has no
// effect and can be replaced.
func TestTombstone_ManyEndAtOnce(t *testing.T) {
	n := newNode(t)
	const many = maxDropped + 10
	var in, out []registry.Command
	for i := range many {
		c := register("orders", fmt.Sprintf("10.0.%d.%d", i>>8, i&255), 80)
		in, out = append(in, c), append(out, registry.Deregister{Key: c.Spec.In(c.Service)})
	}
	n.Apply(n.entry(in...))
	n.Apply(n.entry(out...))
	n.time += 60 * second
	n.ok(registry.NoOp{})
	if left := len(n.state.tombs.queue); left != many-maxDropped {
		t.Fatalf("%d tombstones left, want %d", left, many-maxDropped)
	}
	last := in[many-1].(registry.Register)
	last.FromBeat = true
	n.ok(last)
	if left := len(n.state.tombs.queue); left != 0 {
		t.Errorf("%d tombstones left", left)
	}
}

func TestLease_LowestFreeNumber(t *testing.T) {
	n := newNode(t)
	at := func(ip string) uint32 { return n.Instance(spec(ip, 80).In(key("orders"))).Lease }
	for _, ip := range []string{"a", "b", "c", "d"} {
		n.ok(register("orders", ip, 80))
	}
	for _, ip := range []string{"c", "a", "b"} {
		n.ok(registry.Deregister{Key: spec(ip, 80).In(key("orders"))})
	}
	restored := newFSM(t, Options{})
	load(t, restored, save(t, n.FSM))
	again := n.entry(register("orders", "e", 80), register("orders", "f", 80), register("orders", "g", 80), register("orders", "h", 80))
	n.Apply(again)
	restored.Apply(again)
	if e, f, g, h := at("e"), at("f"), at("g"), at("h"); e != 1 || f != 2 || g != 3 || h != 5 {
		t.Errorf("leases %d %d %d %d, want 1 2 3 5", e, f, g, h)
	}
	if a, b := contents(t, n.FSM), contents(t, restored); a != b {
		t.Errorf("a restored node grants other leases:\n%s\n%s", a, b)
	}
}

func TestGuards_LeaveWhatChangedMeanwhile(t *testing.T) {
	n := newNode(t)
	n.ok(register("orders", "10.0.0.1", 80))
	l, _ := n.Lease(1)
	n.ok(register("orders", "10.0.0.1", 80)) // granted again
	for _, c := range []registry.Command{
		registry.EvictBatch{Term: n.term, Items: []registry.LeaseRef{l.LeaseRef, {Number: 9}, {}}},
		registry.HealthBatch{Term: n.term, Items: []registry.HealthItem{{Lease: 1, Grant: l.Grant}, {Lease: 1 << 31}, {}}},
		registry.ProbeBatch{Term: n.term, Items: []registry.ProbeItem{{Key: l.Key, Generation: l.Grant}, {}, {}}},
	} {
		if r := n.ok(c); r.Changed || r.Skipped != 3 {
			t.Errorf("%T: %+v, want 3 skipped", c, r)
		}
	}
	l, _ = n.Lease(1)
	if r := n.ok(registry.EvictBatch{Term: n.term - 1, Items: []registry.LeaseRef{l.LeaseRef}}); r.Changed || r.Skipped != 1 {
		t.Errorf("batch of an older term: %+v", r)
	}
	n.refused(registry.TermStart{Term: n.term - 1}, registry.ErrGuardFailed)
}

func TestStamp_NeverGoesBack(t *testing.T) {
	n := newNode(t)
	n.time = 5_000_000
	n.ok(register("orders", "10.0.0.1", 80))
	before := n.Service(key("orders")).Stamp
	n.time = 1_000_000 // the next leader's clock is behind
	c := register("orders", "10.0.0.1", 80)
	c.Spec.Weight = 3
	n.ok(c)
	after := n.Service(key("orders")).Stamp
	if after <= before || n.LastTime() != 5_001_000 {
		t.Errorf("stamp %d after %d, time %d", after, before, n.LastTime())
	}
	n.ok(registry.Deregister{Key: c.Spec.In(c.Service)})
	last := n.Service(key("orders")).Stamp
	n.ok(registry.ServiceDelete{Key: key("orders")})
	n.ok(c)
	if again := n.Service(key("orders")).Stamp; again <= last {
		t.Errorf("stamp of a service made anew is %d, before it was %d", again, last)
	}
}

func TestFatal_NothingOfTheBatchIsApplied(t *testing.T) {
	var fatal []error
	n := &node{newFSM(t, Options{Fatal: func(err error) { fatal = append(fatal, err) }}), newScript(t)}
	n.ok(register("orders", "10.0.0.1", 80))
	before, applied := contents(t, n.FSM), n.Applied()

	good, bad := n.entry(register("orders", "10.0.0.2", 80)), n.entry(registry.NoOp{})
	bad.Data = append(bad.Data, 0x38, 1)
	responses := n.ApplyBatch([]*raft.Log{good, n.configuration(), bad})
	if len(responses) != 3 || len(fatal) != 1 || contents(t, n.FSM) != before || n.Applied() != applied {
		t.Fatalf("responses %v, fatal %v, applied %d:\n%s", responses, fatal, n.Applied(), contents(t, n.FSM))
	}
	for _, word := range []string{"entry 13", "field 7", "newest version"} {
		if !strings.Contains(fatal[0].Error(), word) {
			t.Errorf("%q does not say %q", fatal[0], word)
		}
	}
	if err, is := n.Apply(good).(error); !is || !errors.Is(err, fatal[0]) || n.Applied() != applied {
		t.Errorf("the next batch was answered %v", err)
	}
	if _, err := n.Snapshot(); !errors.Is(err, fatal[0]) {
		t.Errorf("a snapshot of a state that lacks entries: %v", err)
	}
}

func TestFatal_FeatureLevelOfANewerBuild(t *testing.T) {
	var fatal error
	n := &node{newFSM(t, Options{Fatal: func(err error) { fatal = err }}), newScript(t)}
	n.Apply(n.entry(registry.FeatureLevel{Level: Level + 1}))
	if fatal == nil || n.FeatureLevel() != 1 {
		t.Fatalf("fatal %v, level %d", fatal, n.FeatureLevel())
	}
}

func TestFatal_PanicsByDefault(t *testing.T) {
	n := newNode(t)
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	n.Apply(&raft.Log{Index: 11, Type: raft.LogCommand, Data: []byte("{}")})
}

func TestApplyBatch_ConfigurationEntries(t *testing.T) {
	n := newNode(t)
	responses := n.ApplyBatch([]*raft.Log{n.configuration(), n.entry(), n.entry(registry.NoOp{}, registry.NoOp{}), n.configuration()})
	if len(responses) != 4 || responses[0] != nil || responses[3] != nil {
		t.Fatalf("responses %v", responses)
	}
	if none, two := responses[1].([]registry.Result), responses[2].([]registry.Result); len(none) != 0 || len(two) != 2 {
		t.Errorf("results %v and %v", none, two)
	}
	if n.Applied() != n.index {
		t.Errorf("applied %d, want %d", n.Applied(), n.index)
	}
	restored := newFSM(t, Options{})
	load(t, restored, save(t, n.FSM))
	if restored.Applied() != n.index {
		t.Errorf("a snapshot kept index %d, want %d", restored.Applied(), n.index)
	}
}

func TestDigestCheck_FindsDivergence(t *testing.T) {
	n := newNode(t)
	n.ok(register("orders", "10.0.0.1", 80))
	index, d := n.Digest()
	n.ok(registry.DigestCheck{At: index, Digest: d})
	n.ok(registry.DigestCheck{At: 5, Digest: registry.Digest{}})
	if _, yes := n.Diverged(); yes {
		t.Fatal("diverged from itself")
	}
	file := save(t, n.FSM)
	n.ok(registry.DigestCheck{At: index, Digest: registry.Digest{1}})
	n.ok(registry.DigestCheck{At: index + 1, Digest: registry.Digest{1}})
	if at, yes := n.Diverged(); !yes || at != index {
		t.Errorf("diverged at %d, %t, want %d", at, yes, index)
	}
	load(t, n.FSM, file)
	if _, yes := n.Diverged(); yes {
		t.Error("a restored snapshot left the alarm on")
	}
}
