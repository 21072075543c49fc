package fsm

import (
	"bytes"
	"runtime"
	"testing"

	"github.com/rollcall-io/rollcall/registry"
)

func TestReads_AllocateNothing(t *testing.T) {
	n := rich(t)
	service, in := key("orders"), spec("10.0.0.1", 8080).In(key("orders"))
	again := register("orders", "10.0.0.1", 8080)
	for name, read := range map[string]func(){
		"service":   func() { n.Service(service) },
		"instance":  func() { n.Instance(in) },
		"lease":     func() { n.Lease(1) },
		"unchanged": func() { n.Unchanged(again) },
		"tombstone": func() { n.Tombstone(in) },
		"applied":   func() { n.Applied() },
	} {
		if got := testing.AllocsPerRun(100, read); got != 0 {
			t.Errorf("%s: %v allocations", name, got)
		}
	}
}

func TestUnchanged(t *testing.T) {
	n := newNode(t)
	c := register("orders", "10.0.0.1", 80)
	if _, same := n.Unchanged(c); same {
		t.Error("an instance that is not there is unchanged")
	}
	c.Spec.Weight = 0.001 // stored as 0.01
	n.ok(c)
	if ref, same := n.Unchanged(c); !same || ref.Number != 1 || ref.Grant.Index != n.index {
		t.Errorf("%+v, %t", ref, same)
	}
	for name, change := range map[string]func(*registry.Spec){
		"kind":     func(s *registry.Spec) { s.Ephemeral = false },
		"health":   func(s *registry.Spec) { s.Healthy = false },
		"metadata": func(s *registry.Spec) { s.Metadata = nil },
	} {
		other := c
		change(&other.Spec)
		if _, same := n.Unchanged(other); same {
			t.Errorf("another %s is unchanged", name)
		}
	}
	persistent := register("orders", "10.0.0.2", 80)
	persistent.Spec.Ephemeral = false
	n.ok(persistent)
	if ref, same := n.Unchanged(persistent); !same || ref != (registry.LeaseRef{}) {
		t.Errorf("persistent: %+v, %t", ref, same)
	}
}

// What restoring allocates for a file is bounded by what the file holds, whatever
// lengths it claims.
func TestRestore_BoundedAllocation(t *testing.T) {
	hostile := append([]byte("ROLLCALL\x00\x00\x00\x01H"), 0x02, 0xff, 0xff, 0xff, 0x02, 0xff, 0xff, 0xff)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, err := readSnapshot(bytes.NewReader(hostile)); err == nil {
		t.Fatal("read")
	}
	runtime.ReadMemStats(&after)
	if got := after.TotalAlloc - before.TotalAlloc; got > 4<<20 {
		t.Errorf("%d bytes allocated for a file of %d", got, len(hostile))
	}
}
