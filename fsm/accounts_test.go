package fsm

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/rollcall-io/rollcall/internal/wire"
	"github.com/rollcall-io/rollcall/registry"
)

const testAuthKey = "0123456789abcdef0123456789abcdef"

func testUser(name string) registry.User {
	return registry.User{Name: name, Hash: "$2a$10$" + strings.Repeat("x", 53)}
}

// genAccountsCommand draws what happens to accounts, with few names so that they meet.
func genAccountsCommand(t *rapid.T) registry.Command {
	user := testUser(rapid.SampledFrom([]string{"admin", "alice", "bob", ""}).Draw(t, "user"))
	if rapid.Bool().Draw(t, "other password") {
		user.Hash = strings.ReplaceAll(user.Hash, "x", "y")
	}
	binding := registry.RoleBinding{Role: rapid.SampledFrom([]string{"ops", "dev", registry.RoleAdmin}).Draw(t, "role"), User: user.Name}
	permission := registry.Permission{Role: binding.Role, Resource: rapid.SampledFrom([]string{"*:*:*", "dev:*:*", ""}).Draw(t, "resource"), Action: "r"}
	switch rapid.IntRange(0, 7).Draw(t, "about accounts") {
	case 0:
		return registry.AuthInit{Key: testAuthKey, Admin: user}
	case 1:
		return registry.UserCreate{User: user}
	case 2:
		return registry.UserUpdate{User: user}
	case 3:
		return registry.UserDelete{Name: user.Name}
	case 4:
		return registry.RoleAdd{Binding: binding}
	case 5:
		return registry.RoleRemove{Binding: binding}
	case 6:
		return registry.PermissionRemove{Permission: permission}
	}
	return registry.PermissionAdd{Permission: permission}
}

func TestAccounts_Apply(t *testing.T) {
	n := newNode(t)
	n.ok(registry.AuthInit{Key: testAuthKey, Admin: testUser("admin")})
	n.refused(registry.AuthInit{Key: strings.Repeat("z", 64), Admin: testUser("eve")}, registry.ErrGuardFailed)
	n.refused(registry.UserDelete{Name: "admin"}, registry.ErrInvalid)
	n.refused(registry.UserUpdate{User: testUser("alice")}, registry.ErrUserNotFound)
	n.refused(registry.UserCreate{User: registry.User{Name: "alice", Hash: "secret"}}, registry.ErrInvalid)
	n.ok(registry.UserCreate{User: testUser("alice")})
	n.refused(registry.UserCreate{User: testUser("alice")}, registry.ErrUserExists)
	ops := registry.RoleBinding{Role: "ops", User: "alice"}
	allow := registry.Permission{Role: "ops", Resource: "dev:*:*", Action: "rw"}
	n.refused(registry.PermissionAdd{Permission: allow}, registry.ErrInvalid)
	n.refused(registry.RoleAdd{Binding: registry.RoleBinding{Role: registry.RoleAdmin, User: "alice"}}, registry.ErrInvalid)
	n.refused(registry.RoleAdd{Binding: registry.RoleBinding{Role: "ops", User: "bob"}}, registry.ErrUserNotFound)
	n.refused(registry.RoleRemove{Binding: registry.RoleBinding{Role: registry.RoleAdmin}}, registry.ErrInvalid)
	n.ok(registry.RoleAdd{Binding: ops})
	n.ok(registry.PermissionAdd{Permission: allow})
	if r := n.ok(registry.PermissionAdd{Permission: allow}); r.Changed {
		t.Error("the same permission changed something")
	}
	if a := n.Accounts(); a.Key != testAuthKey || !a.Has("admin", registry.RoleAdmin) || len(a.PermissionsOf("ops")) != 1 {
		t.Errorf("%+v", a)
	}
	if _, d := n.Digest(); d != recount(t, n.FSM) {
		t.Error("the digest is not that of the records")
	}
	n.ok(registry.RoleRemove{Binding: registry.RoleBinding{Role: "ops"}})
	n.ok(registry.UserDelete{Name: "alice"})
	n.ok(registry.UserDelete{Name: "alice"})
	if a := n.Accounts(); len(a.Users) != 1 || len(a.Bindings) != 1 || len(a.Permissions) != 0 {
		t.Errorf("%+v", a)
	}
	if _, d := n.Digest(); d != recount(t, n.FSM) {
		t.Error("the digest is not that of the records")
	}
}

// A snapshot's records of accounts are checked like all others.
func TestAccounts_BadRecords(t *testing.T) {
	alice := wire.Record{Kind: wire.RecordUser, User: testUser("alice")}
	for name, records := range map[string][]wire.Record{
		"twice":           {alice, alice},
		"no hash":         {{Kind: wire.RecordUser, User: registry.User{Name: "alice"}}},
		"role of nobody":  {alice, {Kind: wire.RecordBinding, Binding: registry.RoleBinding{Role: "ops", User: "bob"}}},
		"unsorted":        {{Kind: wire.RecordUser, User: testUser("bob")}, alice},
		"permission":      {{Kind: wire.RecordPermission, Permission: registry.Permission{Role: "r", Resource: "x", Action: "all"}}},
		"short key":       {{Kind: wire.RecordAuthKey, AuthKey: "k"}},
		"a key and a key": {{Kind: wire.RecordAuthKey, AuthKey: testAuthKey}, {Kind: wire.RecordAuthKey, AuthKey: testAuthKey}},
	} {
		b := newBuilder(wire.SnapshotHeader{})
		var err error
		for _, r := range records {
			if err == nil {
				err = b.account(r)
			}
		}
		if err == nil {
			t.Errorf("%s: taken", name)
		}
	}
}
