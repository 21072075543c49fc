package fsm

import (
	"testing"

	"github.com/rollcall-io/rollcall/registry"
)

func TestFSM_DeletedStampIsThatOfTheLastServiceThatLeft(t *testing.T) {
	n := newNode(t)
	if got := n.DeletedStamp(); got != 0 {
		t.Fatalf("%d before anything was deleted", got)
	}
	n.ok(register("orders", "10.0.0.1", 80))
	n.ok(registry.Deregister{Key: spec("10.0.0.1", 80).In(key("orders"))})
	last := n.Service(key("orders")).Stamp
	n.ok(registry.ServiceDelete{Key: key("orders")})
	if got := n.DeletedStamp(); got != last {
		t.Errorf("%d, want %d", got, last)
	}
	n.ok(register("orders", "10.0.0.1", 80))
	if got := n.Service(key("orders")).Stamp; got <= last {
		t.Errorf("a service made anew has stamp %d, not above %d", got, last)
	}
}
