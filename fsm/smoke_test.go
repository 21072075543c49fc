package fsm

import (
	"testing"

	"github.com/rollcall-io/rollcall/registry"
)

func TestSmoke(t *testing.T) {
	n := newNode(t)
	n.ok(register("orders", "10.0.0.1", 80))
	n.ok(register("orders", "10.0.0.2", 80))
	n.ok(registry.Deregister{Key: spec("10.0.0.1", 80).In(key("orders"))})
	if s := n.Service(key("orders")); s.Len() != 1 {
		t.Fatal(s)
	}
	file := save(t, n.FSM)
	m := newFSM(t, Options{})
	load(t, m, file)
	i, d := n.Digest()
	j, e := m.Digest()
	if i != j || d != e {
		t.Fatal(i, j, d, e)
	}
	n.refused(registry.ServiceDelete{Key: key("orders")}, registry.ErrServiceNotEmpty)
}
