package httpapi

import (
	"errors"
	"net/http"
	"strings"

	"github.com/rollcall-io/rollcall/registry"
)

var roleRoutes = []route{
	{http.MethodGet, authPrefix + "/roles", adminReads, (*Server).roles},
	{http.MethodGet, authPrefix + "/roles/search", adminReads, (*Server).searchRoles},
	{http.MethodPost, authPrefix + "/roles", adminWrite, (*Server).addRole},
	{http.MethodDelete, authPrefix + "/roles", adminWrite, (*Server).removeRole},
	{http.MethodGet, authPrefix + "/permissions", adminReads, (*Server).permissions},
	{http.MethodPost, authPrefix + "/permissions", adminWrite, (*Server).addPermission},
	{http.MethodDelete, authPrefix + "/permissions", adminWrite, (*Server).removePermission},
}

// roles is GET /auth/roles: who has which role, of one user or of all.
func (s *Server) roles(r *request) error {
	user := r.optional("username", "")
	var kept []registry.RoleBinding
	for _, b := range s.opts.Reader.Accounts().Bindings {
		if user == "" || b.User == user {
			kept = append(kept, b)
		}
	}
	return accountPage(r, kept, func(b []byte, binding registry.RoleBinding) []byte {
		b = appendString(append(b, `{"role":`...), binding.Role)
		return append(appendString(append(b, `,"username":`...), binding.User), '}')
	})
}

func (s *Server) searchRoles(r *request) error {
	text, err := r.bound("role")
	if err != nil {
		return err
	}
	var names []string
	for _, b := range s.opts.Reader.Accounts().Bindings {
		if n := len(names); n == 0 || names[n-1] != b.Role { // they are sorted by role
			names = append(names, b.Role)
		}
	}
	return r.found(names, text)
}

func (s *Server) addRole(r *request) error {
	var b registry.RoleBinding
	var err error
	if b.Role, err = r.bound("role"); err != nil {
		return err
	}
	if b.User, err = r.bound("username"); err != nil {
		return err
	}
	if b.Role == registry.RoleAdmin {
		return illegal("role '" + registry.RoleAdmin + "' is not permitted to create!")
	}
	_, err = r.propose(registry.RoleAdd{Binding: b})
	if errors.Is(err, registry.ErrUserNotFound) {
		return illegal("user '" + shorten(b.User) + "' not found!")
	}
	return r.restOK("add role ok!", err)
}

// removeRole is DELETE /auth/roles: a role of one user or, without a user, the role with
// its permissions.
func (s *Server) removeRole(r *request) error {
	role, err := r.bound("role")
	if err != nil {
		return err
	}
	user := r.optional("username", "")
	_, err = r.propose(registry.RoleRemove{Binding: registry.RoleBinding{Role: role, User: user}})
	if user == "" {
		return r.restOK("delete role of user "+role+" ok!", err)
	}
	return r.restOK("delete role of user "+user+" ok!", err)
}

// permissions is GET /auth/permissions, of one role or of all.
func (s *Server) permissions(r *request) error {
	accounts := s.opts.Reader.Accounts()
	kept := accounts.Permissions
	if role := r.optional("role", ""); role != "" {
		kept = accounts.PermissionsOf(role)
	}
	return accountPage(r, kept, func(b []byte, p registry.Permission) []byte {
		b = appendString(append(b, `{"role":`...), p.Role)
		b = appendString(append(b, `,"resource":`...), p.Resource)
		return append(appendString(append(b, `,"action":`...), p.Action), '}')
	})
}

func (r *request) permissionForm() (p registry.Permission, err error) {
	for _, f := range []struct {
		name string
		into *string
	}{{"role", &p.Role}, {"resource", &p.Resource}, {"action", &p.Action}} {
		if *f.into, err = r.bound(f.name); err != nil {
			return p, err
		}
	}
	return p, nil
}

func (s *Server) addPermission(r *request) error {
	p, err := r.permissionForm()
	if err != nil {
		return err
	}
	_, err = r.propose(registry.PermissionAdd{Permission: p})
	return r.restOK("add permission ok!", err)
}

func (s *Server) removePermission(r *request) error {
	p, err := r.permissionForm()
	if err != nil {
		return err
	}
	_, err = r.propose(registry.PermissionRemove{Permission: p})
	return r.restOK("delete permission ok!", err)
}

// accountPage answers a page of a list, counted from 1, in the form of Nacos' console.
func accountPage[T any](r *request, list []T, item func([]byte, T) []byte) error {
	pageNo, err := r.boundInteger("pageNo")
	if err != nil {
		return err
	}
	pageSize, err := r.boundInteger("pageSize")
	if err != nil {
		return err
	}
	if pageSize < 1 || pageNo < 1 {
		return registry.Invalid("pageSize", r.optional("pageSize", ""), "page and size must be above 0")
	}
	from, to, err := pageOf(len(list), pageNo, pageSize)
	if err != nil {
		return err
	}
	pages := len(list) / pageSize
	if len(list)%pageSize > 0 {
		pages++
	}
	b := appendInt(append(r.buffer(), `{"totalCount":`...), int64(len(list)))
	b = appendInt(append(b, `,"pageNumber":`...), int64(pageNo))
	b = appendInt(append(b, `,"pagesAvailable":`...), int64(pages))
	b = append(b, `,"pageItems":[`...)
	for i, v := range list[from:to] {
		if i > 0 {
			b = append(b, ',')
		}
		b = item(b, v)
	}
	return r.json(append(b, "]}"...))
}

// found answers the names that contain a text.
func (r *request) found(names []string, text string) error {
	b := append(r.buffer(), '[')
	first := true
	for _, name := range names {
		if !strings.Contains(name, text) {
			continue
		}
		if !first {
			b = append(b, ',')
		}
		first = false
		b = appendString(b, name)
	}
	return r.json(append(b, ']'))
}

// restOK answers a change of the accounts that went well with Nacos' text for it.
func (r *request) restOK(text string, err error) error {
	if err != nil {
		return err
	}
	b := appendString(append(r.buffer(), `{"code":200,"message":`...), text)
	return r.json(append(b, `,"data":null}`...))
}
