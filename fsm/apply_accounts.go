package fsm

import (
	"fmt"
	"strings"

	"github.com/rollcall-io/rollcall/internal/wire"
	"github.com/rollcall-io/rollcall/registry"
)

// accounts carries out a command about accounts; ok is false for every other one. The
// rules are those of registry.Accounts.
func (t *tx) accounts(c registry.Command) (result registry.Result, ok bool) {
	before := t.state.accounts
	next, ok, err := before.Apply(ownAccounts(c))
	switch {
	case !ok:
		return registry.Result{}, false
	case err != nil:
		return t.refuse(err), true
	case next == before:
		return t.done(false), true
	}
	t.state.accounts = next
	compareLists(before.Users, next.Users, wire.AppendUser, t.sumRecord)
	compareLists(before.Bindings, next.Bindings, wire.AppendBinding, t.sumRecord)
	compareLists(before.Permissions, next.Permissions, wire.AppendPermission, t.sumRecord)
	if before.Key != next.Key {
		t.sumRecord(wire.AppendAuthKey(nil, next.Key), true)
	}
	return t.done(true), true
}

// sumRecord brings the sum up to date for a record that came or went.
func (t *tx) sumRecord(record []byte, came bool) {
	if came {
		t.state.sum.add(hashOf(record))
	} else {
		t.state.sum.sub(hashOf(record))
	}
}

// compareLists reports every value that only one of two sorted lists has, as its record.
func compareLists[T interface {
	comparable
	Compare(T) int
}](before, next []T, record func([]byte, T) []byte, report func(record []byte, came bool)) {
	for len(before) > 0 || len(next) > 0 {
		switch {
		case len(next) == 0 || len(before) > 0 && before[0].Compare(next[0]) < 0:
			report(record(nil, before[0]), false)
			before = before[1:]
		case len(before) == 0 || next[0].Compare(before[0]) < 0:
			report(record(nil, next[0]), true)
			next = next[1:]
		default:
			if before[0] != next[0] {
				report(record(nil, before[0]), false)
				report(record(nil, next[0]), true)
			}
			before, next = before[1:], next[1:]
		}
	}
}

// ownAccounts is a command whose texts are no parts of its log entry.
func ownAccounts(c registry.Command) registry.Command {
	switch c := c.(type) {
	case registry.AuthInit:
		return registry.AuthInit{Key: strings.Clone(c.Key), Admin: ownUser(c.Admin)}
	case registry.UserCreate:
		return registry.UserCreate{User: ownUser(c.User)}
	case registry.UserUpdate:
		return registry.UserUpdate{User: ownUser(c.User)}
	case registry.RoleAdd:
		return registry.RoleAdd{Binding: ownBinding(c.Binding)}
	case registry.PermissionAdd:
		return registry.PermissionAdd{Permission: ownPermission(c.Permission)}
	}
	return c
}

func ownUser(u registry.User) registry.User {
	return registry.User{Name: strings.Clone(u.Name), Hash: strings.Clone(u.Hash)}
}

func ownBinding(b registry.RoleBinding) registry.RoleBinding {
	return registry.RoleBinding{Role: strings.Clone(b.Role), User: strings.Clone(b.User)}
}

func ownPermission(p registry.Permission) registry.Permission {
	return registry.Permission{Role: strings.Clone(p.Role), Resource: strings.Clone(p.Resource), Action: strings.Clone(p.Action)}
}

// writeAccounts writes the records of the accounts, in their own order.
func writeAccounts(w *snapshotWriter, a *registry.Accounts) {
	for _, u := range a.Users {
		w.record(wire.AppendUser(w.scratch(), u))
	}
	for _, b := range a.Bindings {
		w.record(wire.AppendBinding(w.scratch(), b))
	}
	for _, p := range a.Permissions {
		w.record(wire.AppendPermission(w.scratch(), p))
	}
	if a.Key != "" {
		w.record(wire.AppendAuthKey(w.scratch(), a.Key))
	}
}

// account takes one record of the accounts from a snapshot.
func (b *builder) account(r wire.Record) (err error) {
	a := &b.accounts
	switch r.Kind {
	case wire.RecordUser:
		a.Users, err = ascending(a.Users, ownUser(r.User), registry.ValidateUser(r.User))
	case wire.RecordBinding:
		a.Bindings, err = ascending(a.Bindings, ownBinding(r.Binding), nil)
		if _, found := a.User(r.Binding.User); err == nil && !found {
			err = fmt.Errorf("role %q belongs to user %q, who is not there", r.Binding.Role, r.Binding.User)
		}
	case wire.RecordPermission:
		a.Permissions, err = ascending(a.Permissions, ownPermission(r.Permission), registry.ValidatePermission(r.Permission))
	case wire.RecordAuthKey:
		if a.Key != "" {
			return fmt.Errorf("the key of tokens is there twice")
		}
		a.Key, err = strings.Clone(r.AuthKey), registry.ValidateAuthKey(r.AuthKey)
	}
	return err
}

// ascending adds a value to a sorted list, behind all that are there.
func ascending[T interface{ Compare(T) int }](list []T, v T, invalid error) ([]T, error) {
	if invalid != nil {
		return list, invalid
	}
	if n := len(list); n > 0 && list[n-1].Compare(v) >= 0 {
		return list, fmt.Errorf("records of accounts are not in ascending order")
	}
	return append(list, v), nil
}
