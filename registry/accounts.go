package registry

import (
	"cmp"
	"slices"
	"strings"
)

// RoleAdmin is the role that may do everything. It is given once, to the first account,
// by an AuthInit, and can neither be granted nor taken away afterwards (Nacos 1.4.7).
const RoleAdmin = "ROLE_ADMIN"

// User is an account. Hash is the bcrypt hash of its password; no password is ever part
// of the state.
type User struct {
	Name string
	Hash string
}

// RoleBinding gives a role to a user. A role exists while it is bound to a user.
type RoleBinding struct {
	Role string
	User string
}

// Permission lets a role act on the resources that Resource matches: `namespace:group:
// naming/service` with `*` for any text, the default namespace spelled as an empty text
// or `public`. Action is `r`, `w` or `rw`.
type Permission struct {
	Role     string
	Resource string
	Action   string
}

// Compare orders users by name, bindings by role and user, permissions by role, resource
// and action: the order in which Accounts keeps them.
func (u User) Compare(o User) int { return strings.Compare(u.Name, o.Name) }

// Compare orders by role, then by user.
func (b RoleBinding) Compare(o RoleBinding) int {
	return cmp.Or(strings.Compare(b.Role, o.Role), strings.Compare(b.User, o.User))
}

// Compare orders by role, resource and action.
func (p Permission) Compare(o Permission) int {
	return cmp.Or(strings.Compare(p.Role, o.Role), strings.Compare(p.Resource, o.Resource), strings.Compare(p.Action, o.Action))
}

// Accounts are all users, roles and permissions and the key that signs tokens. A value is
// immutable: its methods return a new one and share what did not change. The lists are
// sorted without doubles. The zero value has no account.
type Accounts struct {
	// Key signs tokens: made once for the cluster, "" before.
	Key         string
	Users       []User
	Bindings    []RoleBinding
	Permissions []Permission
}

// User is the account of a name, and whether there is one.
func (a *Accounts) User(name string) (User, bool) {
	if i, found := slices.BinarySearchFunc(a.Users, User{Name: name}, User.Compare); found {
		return a.Users[i], true
	}
	return User{}, false
}

// Has tells whether a user has a role.
func (a *Accounts) Has(user, role string) bool {
	_, found := slices.BinarySearchFunc(a.Bindings, RoleBinding{role, user}, RoleBinding.Compare)
	return found
}

// RoleExists tells whether any user has a role.
func (a *Accounts) RoleExists(role string) bool {
	i, _ := slices.BinarySearchFunc(a.Bindings, RoleBinding{Role: role}, RoleBinding.Compare)
	return i < len(a.Bindings) && a.Bindings[i].Role == role
}

// PermissionsOf are the permissions of one role. The slice is shared: do not modify it.
func (a *Accounts) PermissionsOf(role string) []Permission {
	from, _ := slices.BinarySearchFunc(a.Permissions, Permission{Role: role}, Permission.Compare)
	to := from
	for to < len(a.Permissions) && a.Permissions[to].Role == role {
		to++
	}
	return a.Permissions[from:to:to]
}

// Init is a with the signing key and the first account, an administrator. With a key
// there already: ErrGuardFailed.
func (a *Accounts) Init(key string, admin User) (*Accounts, error) {
	if a.Key != "" {
		return a, ErrGuardFailed.Because("accounts were set up already")
	}
	if err := ValidateAuthKey(key); err != nil {
		return a, err
	}
	if err := ValidateUser(admin); err != nil {
		return a, err
	}
	next := *a
	next.Key = key
	next.Users = with(without(a.Users, admin), admin)
	next.Bindings = with(a.Bindings, RoleBinding{RoleAdmin, admin.Name})
	return &next, nil
}

// AddUser is a with one account more. There already: ErrUserExists.
func (a *Accounts) AddUser(u User) (*Accounts, error) {
	if err := ValidateUser(u); err != nil {
		return a, err
	}
	if _, found := a.User(u.Name); found {
		return a, ErrUserExists
	}
	if len(a.Users) >= MaxUsers {
		return a, full("username", u.Name, "accounts", MaxUsers)
	}
	next := *a
	next.Users = with(a.Users, u)
	return &next, nil
}

// SetUser is a with another password of an account. Not there: ErrUserNotFound.
func (a *Accounts) SetUser(u User) (*Accounts, error) {
	if err := ValidateUser(u); err != nil {
		return a, err
	}
	if _, found := a.User(u.Name); !found {
		return a, ErrUserNotFound
	}
	next := *a
	next.Users = with(without(a.Users, u), u)
	return &next, nil
}

// DropUser is a without an account and its roles; a itself when there is no such account.
// An administrator stays: ErrInvalid.
func (a *Accounts) DropUser(name string) (*Accounts, error) {
	if a.Has(name, RoleAdmin) {
		return a, Invalid("username", name, "is an administrator")
	}
	if _, found := a.User(name); !found {
		return a, nil
	}
	next := *a
	next.Users = without(a.Users, User{Name: name})
	next.Bindings = slices.DeleteFunc(slices.Clone(a.Bindings), func(b RoleBinding) bool { return b.User == name })
	return &next, nil
}

// Grant is a with a role given to a user. No such user: ErrUserNotFound; the role of
// administrators: ErrInvalid.
func (a *Accounts) Grant(b RoleBinding) (*Accounts, error) {
	if err := validateRole(b.Role); err != nil {
		return a, err
	}
	if b.Role == RoleAdmin {
		return a, Invalid("role", b.Role, "cannot be granted")
	}
	if _, found := a.User(b.User); !found {
		return a, ErrUserNotFound
	}
	if a.Has(b.User, b.Role) {
		return a, nil
	}
	if len(a.Bindings) >= MaxBindings {
		return a, full("role", b.Role, "roles of users", MaxBindings)
	}
	next := *a
	next.Bindings = with(a.Bindings, b)
	return &next, nil
}

// Revoke is a without a role of one user or, with no user, without the role itself and
// its permissions. What is not there is no error; the role of administrators: ErrInvalid.
func (a *Accounts) Revoke(b RoleBinding) (*Accounts, error) {
	if b.Role == RoleAdmin {
		return a, Invalid("role", b.Role, "cannot be taken away")
	}
	next := *a
	if b.User != "" {
		next.Bindings = without(a.Bindings, b)
	} else {
		next.Bindings = slices.DeleteFunc(slices.Clone(a.Bindings), func(o RoleBinding) bool { return o.Role == b.Role })
		next.Permissions = slices.DeleteFunc(slices.Clone(a.Permissions), func(p Permission) bool { return p.Role == b.Role })
	}
	if len(next.Bindings) == len(a.Bindings) && len(next.Permissions) == len(a.Permissions) {
		return a, nil
	}
	return &next, nil
}

// Allow is a with one permission more. No such role: ErrInvalid.
func (a *Accounts) Allow(p Permission) (*Accounts, error) {
	if err := ValidatePermission(p); err != nil {
		return a, err
	}
	if !a.RoleExists(p.Role) {
		return a, Invalid("role", p.Role, "no such role")
	}
	next := *a
	next.Permissions = with(a.Permissions, p)
	if len(next.Permissions) == len(a.Permissions) {
		return a, nil
	}
	if len(a.Permissions) >= MaxPermissions {
		return a, full("role", p.Role, "permissions", MaxPermissions)
	}
	return &next, nil
}

// Forbid is a without a permission; a itself when it is not there.
func (a *Accounts) Forbid(p Permission) *Accounts {
	next := *a
	next.Permissions = without(a.Permissions, p)
	if len(next.Permissions) == len(a.Permissions) {
		return a
	}
	return &next
}

type ordered[T any] interface{ Compare(T) int }

// with is a copy of a sorted list with v in its place; a list that has it is returned as
// it is, and without is the reverse.
func with[T ordered[T]](list []T, v T) []T {
	i, found := slices.BinarySearchFunc(list, v, T.Compare)
	if found {
		return list
	}
	return slices.Insert(slices.Clone(list), i, v)
}

func without[T ordered[T]](list []T, v T) []T {
	i, found := slices.BinarySearchFunc(list, v, T.Compare)
	if !found {
		return list
	}
	return slices.Delete(slices.Clone(list), i, i+1)
}
