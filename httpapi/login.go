package httpapi

import (
	"errors"
	"net/http"

	"github.com/rollcall-io/rollcall/auth"
	"github.com/rollcall-io/rollcall/registry"
)

const authPrefix = "/nacos/v1/auth"

// accountRoutes exist under two prefixes each, as in Nacos.
var accountRoutes = append(accountRoutesUnder(authPrefix), accountRoutesUnder(authPrefix+"/users")...)

func accountRoutesUnder(prefix string) []route {
	return []route{
		{http.MethodPost, prefix + "/login", login, (*Server).login},
		{http.MethodGet, prefix, adminReads, (*Server).users},
		{http.MethodGet, prefix + "/search", adminReads, (*Server).searchUsers},
		{http.MethodPost, prefix, adminWrite, (*Server).createUser},
		{http.MethodPut, prefix, ownWrite, (*Server).updateUser},
		{http.MethodDelete, prefix, adminWrite, (*Server).deleteUser},
	}
}

// tokenWhenOff is what clients get for a token where nothing is checked.
const tokenWhenOff = "AUTH_DISABLED"

// login is POST /auth/login. Where no accounts are asked for, every login succeeds, so
// that clients that are configured with one work.
func (s *Server) login(r *request) error {
	user, err := r.bound("username")
	if err != nil {
		return err
	}
	password, err := r.bound("password")
	if err != nil {
		return err
	}
	if !s.opts.Enforce {
		return r.session(registry.User{Name: user}, tokenWhenOff, true)
	}
	u, err := s.prove(r, user, password)
	if err != nil {
		s.metrics.refused(err)
		return loginRefused(err)
	}
	return r.session(u, s.opts.Auth.Token(u), auth.Admin(s.opts.Reader.Accounts(), u.Name))
}

// loginRefused is a text, not the page that other refusals are.
func loginRefused(err error) error {
	var locked *auth.LockedError
	if errors.Is(err, auth.ErrUnknownUser) || errors.As(err, &locked) {
		return &reply{status: http.StatusForbidden, text: err.Error(), bare: true}
	}
	return err
}

func (r *request) session(u registry.User, token string, admin bool) error {
	r.gin.Writer.Header()["Authorization"] = []string{"Bearer " + token}
	r.gin.Writer.Header()["Cache-Control"] = []string{"no-store"}
	b := appendString(append(r.buffer(), `{"accessToken":`...), token)
	b = appendInt(append(b, `,"tokenTtl":`...), int64(r.srv.opts.Auth.TokenTTL().Seconds()))
	b = appendBool(append(b, `,"globalAdmin":`...), admin)
	b = appendString(append(b, `,"username":`...), u.Name)
	return r.json(append(b, '}'))
}

// users is GET /auth/users. Nacos shows the hashes of passwords there; here they are "".
func (s *Server) users(r *request) error {
	accounts := s.opts.Reader.Accounts()
	return accountPage(r, accounts.Users, func(b []byte, u registry.User) []byte {
		b = appendString(append(b, `{"username":`...), u.Name)
		return append(b, `,"password":""}`...)
	})
}

func (s *Server) searchUsers(r *request) error {
	text, err := r.bound("username")
	if err != nil {
		return err
	}
	var names []string
	for _, u := range s.opts.Reader.Accounts().Users {
		names = append(names, u.Name)
	}
	return r.found(names, text)
}

func (s *Server) createUser(r *request) error {
	u, err := r.userForm("password")
	if err != nil {
		return err
	}
	_, err = r.propose(registry.UserCreate{User: u})
	if errors.Is(err, registry.ErrUserExists) {
		return illegal("user '" + u.Name + "' already exist!")
	}
	return r.restOK("create user ok!", err)
}

func (s *Server) updateUser(r *request) error {
	u, err := r.userForm("newPassword")
	if err != nil {
		return err
	}
	_, err = r.propose(registry.UserUpdate{User: u})
	if errors.Is(err, registry.ErrUserNotFound) {
		return illegal("user " + u.Name + " not exist!")
	}
	return r.restOK("update user ok!", err)
}

// userForm reads a name and a password and hashes the password.
func (r *request) userForm(passwordParam string) (u registry.User, err error) {
	if u.Name, err = r.bound("username"); err != nil {
		return u, err
	}
	password, err := r.bound(passwordParam)
	if err != nil {
		return u, err
	}
	if u.Hash, err = r.srv.opts.Auth.Hash(r.gin.Request.Context(), password); err != nil {
		return u, err
	}
	return u, registry.ValidateUser(u)
}

func (s *Server) deleteUser(r *request) error {
	name, err := r.bound("username")
	if err != nil {
		return err
	}
	_, err = r.propose(registry.UserDelete{Name: name})
	if errors.Is(err, registry.ErrInvalid) {
		return illegal("cannot delete admin: " + shorten(name))
	}
	return r.restOK("delete user ok!", err)
}
