package fsm

import (
	"reflect"
	"strings"
	"testing"

	"github.com/rollcall-io/rollcall/registry"
)

func TestService_ByHand(t *testing.T) {
	n := newNode(t)
	n.refused(registry.ServiceUpdate{Key: key("orders")}, registry.ErrServiceNotFound)
	n.refused(registry.ServiceDelete{Key: key("orders")}, registry.ErrServiceNotFound)
	n.refused(registry.ClusterUpdate{Key: key("orders"), Cluster: registry.NewCluster("c1")}, registry.ErrServiceNotFound)
	n.refused(registry.ServiceCreate{Key: registry.ServiceKey{}}, registry.ErrInvalid)
	n.refused(registry.ServiceCreate{Key: key("orders"), Spec: registry.ServiceSpec{ProtectThreshold: 2}}, registry.ErrInvalid)
	n.ok(registry.ServiceCreate{Key: key("orders"), Spec: registry.ServiceSpec{ProtectThreshold: 0.5}})
	n.refused(registry.ServiceCreate{Key: key("orders")}, registry.ErrServiceExists)
	n.refused(registry.ServiceUpdate{Key: key("orders"), Spec: registry.ServiceSpec{ProtectThreshold: -1}}, registry.ErrInvalid)
	n.refused(registry.ClusterUpdate{Key: key("orders"), Cluster: registry.NewCluster("a b")}, registry.ErrInvalid)
	if svc := n.Service(key("orders")); svc.ProtectThreshold != 0.5 || svc.Selector.Type != registry.SelectorNone || !svc.Manual {
		t.Errorf("%+v", svc)
	}
	same := registry.ServiceUpdate{Key: key("orders"), Spec: registry.ServiceSpec{ProtectThreshold: 0.5}}
	if r := n.ok(same); r.Changed {
		t.Error("an update with the same settings changed them")
	}
	c := registry.ClusterUpdate{Key: key("orders"), Cluster: registry.NewCluster("c1")}
	c.Cluster.CheckPort = 99
	if first, second := n.ok(c), n.ok(c); !first.Changed || second.Changed {
		t.Errorf("changed %t, then %t", first.Changed, second.Changed)
	}
	in := register("orders", "10.0.0.1", 80)
	in.Spec.Cluster = "c1"
	n.ok(in)
	if got, _ := n.Service(key("orders")).Cluster("c1"); got.CheckPort != 99 {
		t.Errorf("a registration replaced the cluster's settings: %+v", got)
	}
	if err := n.refused(registry.ServiceDelete{Key: key("orders")}, registry.ErrServiceNotEmpty); !strings.Contains(err.Reason, "1") {
		t.Errorf("reason %q does not say how many", err.Reason)
	}
}

func TestEmptyServices_CleanUp(t *testing.T) {
	n := newNode(t)
	leave := func(name string) int64 {
		c := register(name, "10.0.0.1", 80)
		n.ok(c)
		n.ok(registry.Deregister{Key: c.Spec.In(c.Service)})
		return n.time
	}
	first, second := leave("b"), leave("a")
	leave("updated")
	n.ok(registry.ServiceUpdate{Key: key("updated"), Spec: registry.ServiceSpec{ProtectThreshold: 1}})
	n.ok(registry.ServiceCreate{Key: key("by-hand")})
	n.ok(register("in-use", "10.0.0.1", 80))

	if got := n.EmptyServices(first-1, 9); len(got) != 0 {
		t.Errorf("too early: %+v", got)
	}
	if got := n.EmptyServices(second, 9); len(got) != 2 || got[0].Key != key("b") || got[1].Key != key("a") {
		t.Fatalf("%+v", got)
	}
	due := n.EmptyServices(second, 1)
	if len(due) != 1 {
		t.Fatalf("%+v", due)
	}
	n.ok(register("b", "10.0.0.1", 80))
	n.refused(due[0], registry.ErrGuardFailed)
	due = n.EmptyServices(second, 9)
	if len(due) != 1 || due[0].Key != key("a") {
		t.Fatalf("%+v", due)
	}
	leave("a") // used meanwhile, and empty again
	n.refused(due[0], registry.ErrGuardFailed)
	due = n.EmptyServices(n.time, 9)
	if len(due) != 1 || due[0].Key != key("a") {
		t.Fatalf("%+v", due)
	}
	n.ok(due[0])
	if n.Service(key("a")) != nil || len(n.EmptyServices(1<<60, 9)) != 0 {
		t.Error("the service is still there")
	}
}

func TestNamespaces(t *testing.T) {
	n := newNode(t)
	dev := registry.Namespace{ID: "dev", Name: "Dev"}
	n.refused(registry.NamespaceUpdate{Namespace: dev}, registry.ErrNamespaceNotFound)
	n.refused(registry.NamespaceDelete{ID: "dev"}, registry.ErrNamespaceNotFound)
	n.refused(registry.NamespaceCreate{}, registry.ErrInvalid)
	n.ok(registry.NamespaceCreate{Namespace: dev})
	n.refused(registry.NamespaceCreate{Namespace: dev}, registry.ErrNamespaceExists)
	dev.Name = "Development"
	n.ok(registry.NamespaceUpdate{Namespace: dev})
	n.refused(registry.NamespaceUpdate{Namespace: registry.Namespace{ID: "dev", Name: "\n"}}, registry.ErrInvalid)

	c := register("orders", "10.0.0.1", 80)
	c.Service.Namespace = "dev"
	results := n.Apply(n.entry(c, registry.NamespaceDelete{ID: "dev"},
		registry.Deregister{Key: c.Spec.In(c.Service)}, registry.ServiceDelete{Key: c.Service})).([]registry.Result)
	if err := results[1].Err; err == nil || err.Code != registry.CodeNamespaceNotEmpty || !strings.Contains(err.Reason, "1") {
		t.Errorf("deleting a namespace with a service of the same entry: %v", err)
	}
	if got := n.Namespaces(); !reflect.DeepEqual(got, []registry.Namespace{dev}) {
		t.Errorf("records %+v", got)
	}
	if got := n.NamespaceIDs(); !reflect.DeepEqual(got, []string{"dev"}) {
		t.Errorf("known %q", got)
	}
	n.ok(registry.NamespaceDelete{ID: "dev"})
	if records, known := n.Namespaces(), n.NamespaceIDs(); len(records)+len(known) != 0 {
		t.Errorf("left: %v %v", records, known)
	}
}

func TestClusterSettings(t *testing.T) {
	n := newNode(t)
	n.refused(registry.ClusterInit{}, registry.ErrInvalid)
	n.ok(registry.ClusterInit{ClusterID: "one"})
	n.ok(registry.ClusterInit{ClusterID: "one"})
	n.refused(registry.ClusterInit{ClusterID: "two"}, registry.ErrGuardFailed)
	n.refused(registry.FeatureLevel{Level: 0}, registry.ErrGuardFailed)
	n.ok(registry.FeatureLevel{Level: 1})
	n.refused(registry.SwitchSet{Entry: "check", Value: "perhaps"}, registry.ErrInvalid)
	n.refused(registry.SwitchSet{Entry: "nonsense", Value: "true"}, registry.ErrInvalid)
	n.ok(registry.SwitchSet{Entry: "check", Value: "false"})
	if r := n.ok(registry.SwitchSet{Entry: "check", Value: "false"}); r.Changed {
		t.Error("the same value changed the switch")
	}
	if n.ClusterID() != "one" || n.FeatureLevel() != 1 || n.Switches().HealthCheckEnabled {
		t.Errorf("id %q, level %d, switches %+v", n.ClusterID(), n.FeatureLevel(), n.Switches())
	}
}

func TestMetadataBatch_AllOrNothing(t *testing.T) {
	n := newNode(t)
	slow := register("orders", "10.0.0.1", 80)
	slow.Spec.Metadata = registry.Metadata{{Key: registry.KeyBeatInterval, Value: "14000"}}
	n.ok(slow)
	n.ok(register("orders", "10.0.0.2", 80))
	n.refused(registry.MetadataBatch{
		Service: key("orders"), Metadata: registry.Metadata{{Key: registry.KeyBeatTimeout, Value: "9000"}},
	}, registry.ErrInvalid)

	ref, _ := n.Lease(2)
	r := n.ok(registry.MetadataBatch{
		Service: key("orders"), Targets: []registry.Target{
			{Address: spec("10.0.0.2", 80).Address, Ephemeral: true}, {Address: spec("10.0.0.2", 80).Address, Ephemeral: true},
			{Address: slow.Spec.Address, Ephemeral: false}, {},
		},
		Metadata: registry.Metadata{{Key: registry.KeyBeatTimeout, Value: "9000"}},
	})
	in := n.Instance(spec("10.0.0.2", 80).In(key("orders")))
	l, _ := n.Lease(2)
	if len(r.Touched) != 1 || in.Timeouts.Beat != 9000 || len(in.Metadata) != 2 || l.Grant == ref.Grant {
		t.Errorf("%+v: %+v", r, in)
	}
	n.ok(registry.MetadataBatch{Service: key("orders"), Metadata: registry.Metadata{{Key: "zone", Value: "b"}}})
	if again, _ := n.Lease(2); again.Grant != l.Grant {
		t.Error("metadata that says nothing of timeouts granted the lease anew")
	}
	if r := n.ok(registry.MetadataBatch{Service: key("none")}); r.Changed || len(r.Touched) != 0 {
		t.Errorf("on a service that is not there: %+v", r)
	}
}

func TestPatch_TimeoutsAreReadAgain(t *testing.T) {
	n := newNode(t)
	n.ok(register("orders", "10.0.0.1", 80))
	before, _ := n.Lease(1)
	bad := registry.Metadata{{Key: registry.KeyDeleteTimeout, Value: "1"}}
	n.refused(registry.Patch{Key: before.Key, Metadata: &bad}, registry.ErrInvalid)
	good := registry.Metadata{{Key: registry.KeyDeleteTimeout, Value: "60000"}}
	n.ok(registry.Patch{Key: before.Key, Metadata: &good})
	after, _ := n.Lease(1)
	if after.Timeouts.Delete != 60_000 || after.Grant == before.Grant {
		t.Errorf("lease %+v after %+v", after, before)
	}
	n.refused(registry.Patch{Key: spec("10.0.0.9", 80).In(key("orders"))}, registry.ErrInstanceNotFound)
	n.refused(registry.Patch{Key: spec("10.0.0.9", 80).In(key("none"))}, registry.ErrServiceNotFound)
}
