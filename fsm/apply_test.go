package fsm

import (
	"fmt"
	"math"
	"strings"
	"testing"

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

func TestProbeBatch_LeavesANewerRegistration(t *testing.T) {
	n := newNode(t)
	c := register("orders", "10.0.0.1", 80)
	c.Spec.Ephemeral = false
	n.ok(c)
	item := registry.ProbeItem{Key: c.Spec.In(c.Service), Generation: n.Instance(c.Spec.In(c.Service)).Generation}
	n.ok(c)
	if r := n.ok(registry.ProbeBatch{Term: n.term, Items: []registry.ProbeItem{item}}); r.Changed || r.Skipped != 1 {
		t.Errorf("a probe of the registration before: %+v", r)
	}
	item.Generation = n.Instance(item.Key).Generation
	if r := n.ok(registry.ProbeBatch{Term: n.term, Items: []registry.ProbeItem{item}}); !r.Changed || n.Instance(item.Key).Healthy {
		t.Errorf("a probe of the present one: %+v", r)
	}
}

// More changes in one entry than milliseconds until the next raise the stamp above the
// clock; deleting another, older service must not lower what a new service starts from.
func TestStamp_OutlivesTheDeletionOfOthers(t *testing.T) {
	n := newNode(t)
	n.ok(registry.ServiceCreate{Key: key("old")})
	n.ok(registry.ServiceCreate{Key: key("busy")})
	var changes []registry.Command
	for i := range 5000 {
		changes = append(changes, registry.ServiceUpdate{
			Key: key("busy"), Spec: registry.ServiceSpec{ProtectThreshold: float64(i%2+1) / 2},
		})
	}
	n.Apply(n.entry(changes...))
	before := n.Service(key("busy")).Stamp
	n.ok(registry.ServiceDelete{Key: key("busy")})
	n.ok(registry.ServiceDelete{Key: key("old")})
	n.ok(registry.ServiceCreate{Key: key("busy")})
	if after := n.Service(key("busy")).Stamp; after <= before || before <= n.time {
		t.Errorf("stamp %d after %d at %d", after, before, n.time)
	}
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
