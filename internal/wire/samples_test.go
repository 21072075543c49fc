package wire_test

import (
	"github.com/rollcall-io/rollcall/registry"
)

func ptr[T any](v T) *T { return &v }

var (
	sampleService = registry.ServiceKey{Namespace: "public", Grouped: "DEFAULT_GROUP@@orders"}
	sampleSpec    = registry.Spec{
		Address:   registry.Address{Cluster: "DEFAULT", IP: "10.0.0.1", Port: 8080},
		Ephemeral: true, Enabled: true, Healthy: true, Weight: 1, App: "shop",
		Metadata: registry.Metadata{{Key: "version", Value: "1.2.3"}, {Key: "zone", Value: "über"}},
	}
	sampleUser       = registry.User{Name: "alice", Hash: "$2a$10$abcdefghijklmnopqrstuuA5pY2gRvmGQ0vUCXjRzgGtm0uVQ7WzK"}
	sampleBinding    = registry.RoleBinding{Role: "ops", User: "alice"}
	samplePermission = registry.Permission{Role: "ops", Resource: "dev:*:*", Action: "rw"}

	sampleKey = sampleSpec.Address.In(sampleService)
)

// samples holds a full and where it differs an empty command of every kind, by the
// name of its golden file.
var samples = map[string]registry.Command{
	"register":         registry.Register{Service: sampleService, Spec: sampleSpec, FromBeat: true},
	"register-empty":   registry.Register{},
	"deregister":       registry.Deregister{Key: sampleKey, Kind: registry.KindPersistent},
	"update":           registry.Update{Service: sampleService, Spec: sampleSpec},
	"patch":            registry.Patch{Key: sampleKey, Weight: ptr(0.0), Enabled: ptr(false), Healthy: ptr(true), App: ptr(""), Metadata: new(registry.Metadata)},
	"patch-full":       registry.Patch{Key: sampleKey, Weight: ptr(2.5), App: ptr("x"), Metadata: &sampleSpec.Metadata},
	"patch-merge":      registry.Patch{Key: sampleKey, Metadata: &sampleSpec.Metadata, Merge: true},
	"patch-empty":      registry.Patch{},
	"metadata-batch":   registry.MetadataBatch{Service: sampleService, Delete: true, Kind: registry.KindEphemeral, Targets: []registry.Target{{Address: sampleSpec.Address, Ephemeral: true}, {}}, Metadata: sampleSpec.Metadata},
	"health-batch":     registry.HealthBatch{Term: 7, Items: []registry.HealthItem{{Lease: 1, Grant: registry.Position{Index: 300, Seq: 2}, Healthy: true}, {Lease: 4_000_000_000, Grant: registry.Position{Index: 1 << 60}}}},
	"probe-batch":      registry.ProbeBatch{Term: 7, Items: []registry.ProbeItem{{Key: sampleKey, Generation: registry.Position{Index: 9, Seq: 255}, Healthy: true}, {}}},
	"evict-batch":      registry.EvictBatch{Term: 7, Items: []registry.LeaseRef{{Number: 3, Grant: registry.Position{Index: 9}}, {}}},
	"service-create":   registry.ServiceCreate{Key: sampleService, Spec: registry.ServiceSpec{ProtectThreshold: 0.5, Metadata: sampleSpec.Metadata, Selector: registry.Selector{Type: registry.SelectorLabel, Expression: "a = b"}}},
	"service-update":   registry.ServiceUpdate{Key: sampleService, Spec: registry.ServiceSpec{Selector: registry.Selector{Type: registry.SelectorNone}}},
	"service-delete":   registry.ServiceDelete{Key: sampleService, IfRevision: 12},
	"cluster-update":   registry.ClusterUpdate{Key: sampleService, Cluster: registry.Cluster{Name: "c1", Checker: registry.Checker{Type: registry.CheckHTTP, Path: "/up", Headers: "a:b", ExpectedCode: 200, User: "u", Password: "p", Command: "c"}, CheckPort: 81, UseInstancePort: true, Metadata: sampleSpec.Metadata}},
	"cluster-empty":    registry.ClusterUpdate{},
	"switch-set":       registry.SwitchSet{Entry: "check", Value: "false"},
	"namespace-create": registry.NamespaceCreate{Namespace: registry.Namespace{ID: "dev", Name: "Dev", Description: "for tests"}},
	"namespace-update": registry.NamespaceUpdate{Namespace: registry.Namespace{ID: "dev"}},
	"namespace-delete": registry.NamespaceDelete{ID: "dev"},
	"cluster-init":     registry.ClusterInit{ClusterID: "0123456789abcdef"},
	"term-start":       registry.TermStart{Term: 3, Node: "n1", Level: 1},
	"digest-check":     registry.DigestCheck{At: 99, Digest: registry.Digest{1, 2, 3}},
	"feature-level":    registry.FeatureLevel{Level: 2},
	"no-op":            registry.NoOp{},

	"auth-init":         registry.AuthInit{Key: "0123456789abcdef0123456789abcdef", Admin: sampleUser},
	"user-create":       registry.UserCreate{User: sampleUser},
	"user-update":       registry.UserUpdate{User: sampleUser},
	"user-delete":       registry.UserDelete{Name: "alice"},
	"role-add":          registry.RoleAdd{Binding: sampleBinding},
	"role-remove":       registry.RoleRemove{Binding: registry.RoleBinding{Role: "ops"}},
	"permission-add":    registry.PermissionAdd{Permission: samplePermission},
	"permission-remove": registry.PermissionRemove{Permission: samplePermission},
}
