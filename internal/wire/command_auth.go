package wire

import "github.com/rollcall-io/rollcall/registry"

// accountsKind is KindOf for the commands about accounts.
func accountsKind(c registry.Command) Kind {
	switch c.(type) {
	case registry.AuthInit:
		return KindAuthInit
	case registry.UserCreate:
		return KindUserCreate
	case registry.UserUpdate:
		return KindUserUpdate
	case registry.UserDelete:
		return KindUserDelete
	case registry.RoleAdd:
		return KindRoleAdd
	case registry.RoleRemove:
		return KindRoleRemove
	case registry.PermissionAdd:
		return KindPermissionAdd
	case registry.PermissionRemove:
		return KindPermissionRemove
	}
	return 0
}

// accounts writes the body of a command about accounts.
func (e *encoder) accounts(c registry.Command) {
	switch c := c.(type) {
	case registry.AuthInit:
		e.str(1, c.Key)
		e.str(2, c.Admin.Name)
		e.str(3, c.Admin.Hash)
	case registry.UserCreate:
		e.user(c.User)
	case registry.UserUpdate:
		e.user(c.User)
	case registry.UserDelete:
		e.str(1, c.Name)
	case registry.RoleAdd:
		e.binding(c.Binding)
	case registry.RoleRemove:
		e.binding(c.Binding)
	case registry.PermissionAdd:
		e.permission(c.Permission)
	case registry.PermissionRemove:
		e.permission(c.Permission)
	}
}

func (e *encoder) user(u registry.User) {
	e.str(1, u.Name)
	e.str(2, u.Hash)
}

func (d *decoder) user() registry.User { return registry.User{Name: d.str(1), Hash: d.str(2)} }

func (e *encoder) binding(b registry.RoleBinding) {
	e.str(1, b.Role)
	e.str(2, b.User)
}

func (d *decoder) binding() registry.RoleBinding {
	return registry.RoleBinding{Role: d.str(1), User: d.str(2)}
}

func (e *encoder) permission(p registry.Permission) {
	e.str(1, p.Role)
	e.str(2, p.Resource)
	e.str(3, p.Action)
}

func (d *decoder) permission() registry.Permission {
	return registry.Permission{Role: d.str(1), Resource: d.str(2), Action: d.str(3)}
}

func decodeAuthInit(d *decoder) registry.Command {
	return registry.AuthInit{Key: d.str(1), Admin: registry.User{Name: d.str(2), Hash: d.str(3)}}
}

func decodeUserCreate(d *decoder) registry.Command { return registry.UserCreate{User: d.user()} }
func decodeUserUpdate(d *decoder) registry.Command { return registry.UserUpdate{User: d.user()} }
func decodeUserDelete(d *decoder) registry.Command { return registry.UserDelete{Name: d.str(1)} }
func decodeRoleAdd(d *decoder) registry.Command    { return registry.RoleAdd{Binding: d.binding()} }
func decodeRoleRemove(d *decoder) registry.Command { return registry.RoleRemove{Binding: d.binding()} }

func decodePermissionAdd(d *decoder) registry.Command {
	return registry.PermissionAdd{Permission: d.permission()}
}

func decodePermissionRemove(d *decoder) registry.Command {
	return registry.PermissionRemove{Permission: d.permission()}
}
