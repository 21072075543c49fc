package registry

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
)

func account(name string) User { return User{Name: name, Hash: "$2a$10$" + strings.Repeat("x", 53)} }

// A refused or empty command returns the very value that it was given, and no command
// changes it.
func TestAccounts_Immutable(t *testing.T) {
	t.Parallel()
	a := new(Accounts)
	for _, c := range []Command{
		AuthInit{Key: strings.Repeat("k", 32), Admin: account("admin")},
		UserCreate{User: account("bob")}, UserCreate{User: account("alice")},
		RoleAdd{Binding: RoleBinding{"ops", "alice"}}, RoleAdd{Binding: RoleBinding{"ops", "bob"}},
		PermissionAdd{Permission: Permission{"ops", "dev:*:*", "r"}},
		UserUpdate{User: account("alice")}, UserDelete{Name: "bob"},
		PermissionRemove{Permission: Permission{"ops", "dev:*:*", "r"}},
	} {
		before := fmt.Sprintf("%+v", *a)
		next, ok, err := a.Apply(c)
		if !ok || err != nil || next == a {
			t.Fatalf("%+v: %v, changed %t", c, err, next != a)
		}
		if after := fmt.Sprintf("%+v", *a); after != before {
			t.Fatalf("%+v changed %s into %s", c, before, after)
		}
		a = next
	}
	if !reflect.DeepEqual(a.Bindings, []RoleBinding{{RoleAdmin, "admin"}, {"ops", "alice"}}) || len(a.Users) != 2 || len(a.Permissions) != 0 {
		t.Errorf("%+v", a)
	}
	for _, c := range []Command{
		UserDelete{Name: "nobody"}, RoleRemove{Binding: RoleBinding{"ops", "bob"}}, RoleAdd{Binding: RoleBinding{"ops", "alice"}},
		UserCreate{User: account("alice")}, UserDelete{Name: "admin"}, PermissionAdd{Permission: Permission{"none", "*", "r"}},
		PermissionAdd{Permission: Permission{"ops", "*", "x"}}, UserCreate{User: account(" a")}, AuthInit{Key: "short"},
	} {
		if next, _, _ := a.Apply(c); next != a {
			t.Errorf("%+v changed the accounts", c)
		}
	}
	if _, ok, _ := a.Apply(NoOp{}); ok {
		t.Error("NoOp is taken for a command about accounts")
	}
}

func TestAccounts_Limits(t *testing.T) {
	t.Parallel()
	a := &Accounts{}
	for i := range MaxUsers {
		a.Users = append(a.Users, account(fmt.Sprintf("u%05d", i)))
	}
	if _, err := a.AddUser(account("z")); !errors.Is(err, ErrInvalid) {
		t.Errorf("one account too many: %v", err)
	}
	for name, u := range map[string]User{
		"empty": account(""), "long": account(strings.Repeat("x", MaxUserName+1)), "no hash": {Name: "a", Hash: "secret"},
		"control": account("a\nb"),
	} {
		if ValidateUser(u) == nil {
			t.Errorf("%s name is taken", name)
		}
	}
}
