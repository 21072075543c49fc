package registry

import (
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func genInstance(t *rapid.T) *Instance {
	return &Instance{
		Spec: Spec{
			Address: Address{
				Cluster: rapid.SampledFrom([]string{"DEFAULT", "c1"}).Draw(t, "cluster"),
				IP:      rapid.SampledFrom([]string{"10.0.0.1", "10.0.0.2"}).Draw(t, "ip"),
				Port:    uint16(rapid.IntRange(0, 2).Draw(t, "port")),
			},
			Healthy: rapid.Bool().Draw(t, "healthy"),
		},
		Generation: Position{Index: uint64(rapid.IntRange(1, 2).Draw(t, "generation"))},
		Grant:      Position{Index: uint64(rapid.IntRange(1, 2).Draw(t, "grant"))},
	}
}

// genEdits makes a service out of another by some puts and removals.
func genEdits(t *rapid.T, from *Service) *Service {
	d := Edit(from)
	for range rapid.IntRange(0, 8).Draw(t, "edits") {
		in := genInstance(t)
		if rapid.Bool().Draw(t, "remove") {
			d.Remove(in.Address, 7)
		} else {
			d.Put(in)
		}
	}
	return d.Service()
}

// patched applies a change to a list of instances, in a way that has nothing in common
// with Diff.
func patched(before *Service, c Change) map[Address]*Instance {
	after := map[Address]*Instance{}
	for _, in := range listOf(before) {
		after[in.Address] = in
	}
	for _, in := range c.Removed {
		delete(after, in.Address)
	}
	for _, in := range c.Added {
		after[in.Address] = in
	}
	for _, m := range c.Modified {
		after[m.After.Address] = m.After
	}
	return after
}

func TestDiff_AppliedToBeforeGivesAfter(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		before := genEdits(rt, NewDraft(ServiceKey{"public", "G@@s"}, 1).Service())
		after := genEdits(rt, before)
		if rapid.IntRange(0, 9).Draw(rt, "new") == 0 {
			before = nil
		}
		if rapid.IntRange(0, 9).Draw(rt, "deleted") == 0 {
			after = nil
		}
		c := Diff(before, after)
		got := patched(before, c)
		if len(got) != len(listOf(after)) {
			rt.Fatalf("%d instances, want %d", len(got), len(listOf(after)))
		}
		for _, want := range listOf(after) {
			if in := got[want.Address]; in == nil || !sameInstance(in, want) {
				rt.Fatalf("%s: %+v, want %+v", want.IP, in, want)
			}
		}
		for _, in := range c.Added {
			if before != nil && before.Instance(in.Address) != nil {
				rt.Fatalf("%+v is added and was there", in.Address)
			}
		}
		if !Diff(after, after).Empty() || (before != after && c.Empty() != (len(c.Added)+len(c.Removed)+len(c.Modified) == 0)) {
			rt.Fatal("a service differs from itself")
		}
		order := func(list []*Instance) bool {
			return slices.IsSortedFunc(list, func(a, b *Instance) int { return a.Address.Compare(b.Address) })
		}
		if !order(c.Added) || !order(c.Removed) {
			rt.Fatalf("out of order: %+v", c)
		}
	})
}

func TestDiff_NewGrantAloneIsNoChange(t *testing.T) {
	a, b := &Instance{Generation: Position{1, 0}}, &Instance{Generation: Position{1, 0}, Grant: Position{2, 0}}
	before, after := Assemble(Service{}, []*Instance{a}), Assemble(Service{}, []*Instance{b})
	if c := Diff(before, after); !c.Empty() {
		t.Errorf("%+v", c)
	}
	b.Generation.Index = 2
	if c := Diff(before, after); len(c.Modified) != 1 {
		t.Errorf("%+v", c)
	}
}

// However much a draft is edited, the published service stays as it was, and the
// list of a draft stays sorted and without doubles.
func TestDraft_NeverTouchesThePublishedService(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		published := genEdits(rt, NewDraft(ServiceKey{"public", "G@@s"}, 1).Service())
		instances, settings := slices.Clone(published.instances), *published
		clusters := slices.Clone(published.Clusters)
		values := make([]Instance, len(instances))
		for i, in := range instances {
			values[i] = *in
		}

		next := genEdits(rt, published)
		d := Edit(next)
		d.PutCluster(Cluster{Name: "DEFAULT", CheckPort: 9})
		d.SetSpec(ServiceSpec{ProtectThreshold: 1})
		d.SetManual()
		d.Touch(9, 9)

		for i, in := range published.instances {
			if in != instances[i] || !reflect.DeepEqual(*in, values[i]) {
				rt.Fatalf("instance %d of the published service changed", i)
			}
		}
		if !reflect.DeepEqual(*published, settings) || !reflect.DeepEqual(published.Clusters, clusters) {
			rt.Fatalf("the published service changed to %+v", *published)
		}
		for i := 1; i < next.Len(); i++ {
			if next.instances[i-1].Address.Compare(next.instances[i].Address) >= 0 {
				rt.Fatalf("instances %d and %d are out of order", i-1, i)
			}
		}
		if (next.Len() == 0) != (next.EmptySince != 0) {
			rt.Fatalf("%d instances, empty since %d", next.Len(), next.EmptySince)
		}
		for _, in := range next.instances {
			if _, known := next.Cluster(in.Cluster); !known {
				rt.Fatalf("cluster %s has no settings", in.Cluster)
			}
		}
	})
}

func TestDraft_TouchRaisesTheStamp(t *testing.T) {
	d := NewDraft(ServiceKey{"public", "G@@s"}, 1)
	for i, tc := range []struct{ now, want int64 }{{100, 100}, {100, 101}, {50, 102}, {200, 200}} {
		d.Touch(uint64(i+1), tc.now)
		if s := d.Service(); s.Stamp != tc.want || s.Revision != uint64(i+1) {
			t.Errorf("at %d: stamp %d, want %d; revision %d", tc.now, s.Stamp, tc.want, s.Revision)
		}
	}
}

func TestDraft_FreeSnowflake(t *testing.T) {
	d := NewDraft(ServiceKey{"public", "G@@s"}, 1)
	for port, id := range []uint32{1, 0, 3, 2} {
		if id != 0 && id != 3 {
			if got := d.FreeSnowflake(); got != id && port == 0 {
				t.Errorf("first id %d, want %d", got, id)
			}
		}
		d.Put(&Instance{Spec: Spec{Address: Address{IP: "x", Port: uint16(port)}}, SnowflakeID: id})
	}
	if got := d.FreeSnowflake(); got != 4 {
		t.Errorf("id %d, want 4", got)
	}
	d.Remove(Address{IP: "x", Port: 3}, 1)
	if got := d.FreeSnowflake(); got != 2 {
		t.Errorf("id %d, want the smallest free one, 2", got)
	}
	in := d.Service().Instance(Address{IP: "x", Port: 0})
	if got := in.ID(d.Service().Key); got != "0" {
		t.Errorf("the first snowflake id is %q, want 0", got)
	}
	in = d.Service().Instance(Address{IP: "x", Port: 1})
	if got := in.ID(d.Service().Key); got != "x#1##G@@s" {
		t.Errorf("simple id %q", got)
	}
}

func TestAssemble_RefusesDisorder(t *testing.T) {
	a, b := &Instance{Spec: Spec{Address: Address{IP: "a"}}}, &Instance{Spec: Spec{Address: Address{IP: "b"}}}
	if s := Assemble(Service{}, []*Instance{a, b}); s == nil || s.Len() != 2 || s.Instance(b.Address) != b {
		t.Errorf("%+v", s)
	}
	if Assemble(Service{}, []*Instance{b, a}) != nil || Assemble(Service{}, []*Instance{a, a}) != nil {
		t.Error("a list out of order was taken")
	}
}
