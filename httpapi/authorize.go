package httpapi

import (
	"errors"
	"net"
	"net/http"
	"strings"

	"github.com/rollcall-io/rollcall/auth"
	"github.com/rollcall-io/rollcall/registry"
)

// authorize refuses a request whose caller may not do what the route asks for. It runs
// on the node that takes the request, after its parameters were read; other nodes trust
// what a node forwards, which has proven that it belongs to the cluster. Neither the name
// of a client nor a header of its own choice is ever trusted.
func (s *Server) authorize(r *request, a access) error {
	if !s.opts.Enforce || a.right == rightNone {
		return nil
	}
	caller, err := s.caller(r)
	if err == nil {
		r.caller = caller
		if !s.permits(r, a) {
			err = auth.ErrDenied
		}
	}
	if err != nil {
		s.metrics.refused(err)
	}
	return err
}

// caller is the account that a request proves: a token or a password in the header
// Authorization, a token as parameter, or username and password as parameters.
func (s *Server) caller(r *request) (string, error) {
	if text := r.gin.Request.Header.Get("Authorization"); text != "" {
		if token, found := cutPrefixFold(text, "Bearer "); found {
			return s.tokenCaller(javaTrim(token))
		}
		if user, password, found := r.gin.Request.BasicAuth(); found {
			return s.passwordCaller(r, user, password)
		}
	}
	if token := r.optional("accessToken", ""); token != "" {
		return s.tokenCaller(token)
	}
	user, _ := r.params.get("username")
	password, found := r.params.get("password")
	if user == "" || !found {
		return "", auth.ErrUnknownUser
	}
	return s.passwordCaller(r, user, password)
}

func (s *Server) tokenCaller(token string) (string, error) {
	u, err := s.opts.Auth.Verify(token)
	return u.Name, err
}

func (s *Server) passwordCaller(r *request, user, password string) (string, error) {
	u, err := s.prove(r, user, password)
	return u.Name, err
}

// prove checks a password and logs, never with the password, when tries are refused.
func (s *Server) prove(r *request, user, password string) (registry.User, error) {
	peer := r.peerHost()
	u, err := s.opts.Auth.Password(r.gin.Request.Context(), user, password, peer)
	var locked *auth.LockedError
	if errors.As(err, &locked) && s.once.first("locked "+peer+" "+shorten(user), r.start) {
		s.log.Warn("logins are refused after too many wrong passwords", "user", shorten(user), "peer", peer, "wait", locked.Wait)
	}
	return u, err
}

// peerHost is the address at the other end of the connection. What a header says of it
// does not count.
func (r *request) peerHost() string {
	host, _, err := net.SplitHostPort(r.gin.Request.RemoteAddr)
	if err != nil {
		return r.gin.Request.RemoteAddr
	}
	return host
}

func cutPrefixFold(s, prefix string) (rest string, found bool) {
	if len(s) < len(prefix) || !strings.EqualFold(s[:len(prefix)], prefix) {
		return s, false
	}
	return s[len(prefix):], true
}

// permits tells whether the caller has the right that a route asks for. A route whose
// declaration is missing is for administrators.
func (s *Server) permits(r *request, a access) bool {
	accounts := s.opts.Reader.Accounts()
	action := auth.Read
	if a.writes {
		action = auth.Write
	}
	if a.right == rightUser || auth.Admin(accounts, r.caller) {
		return true
	}
	if a.right == rightOwner {
		name, _ := r.params.get("username")
		return name == r.caller
	}
	resource, found := r.resource(a.right)
	return found && auth.Allowed(accounts, r.caller, resource, action)
}

// resource is what a request touches; found is false for what only administrators may.
// It is read as the handlers read it: what is checked here is what they act on.
func (r *request) resource(needed right) (resource auth.Resource, found bool) {
	switch needed {
	case rightService:
		if r.rawServiceName() == "" {
			return auth.Namespace(r.namespace()), true
		}
		return auth.Service(r.service()), true
	case rightNamespace:
		return auth.Namespace(r.namespace()), true
	case rightNativeNamespace:
		return auth.Namespace(r.either("namespace", "namespaceId", registry.DefaultNamespace)), true
	case rightDom:
		return auth.Service(r.domService(r.optional("dom", ""))), true
	case rightStatusKey:
		text, _ := r.params.get("key")
		if r.v2 {
			text = r.gin.Param("key")
		}
		return auth.Service(statusKey(text)), true
	case rightEverywhere:
		if id := r.optional("namespaceId", ""); id != "" {
			return auth.Namespace(id), true
		}
		return auth.Namespace(auth.Any), true
	case rightAllNamespaces:
		return auth.Namespace(auth.Any), true
	}
	return auth.Resource{}, false
}

// failAuth answers a refusal of authorize as Nacos' filter does, with an error page, in
// the open API too; handled is false for every other error.
func (r *request) failAuth(err error) (handled bool) {
	var locked *auth.LockedError
	switch {
	case errors.As(err, &locked), errors.Is(err, auth.ErrUnknownUser), errors.Is(err, auth.ErrTokenInvalid),
		errors.Is(err, auth.ErrTokenExpired), errors.Is(err, auth.ErrDenied):
		_ = r.errorPage(http.StatusForbidden, err.Error())
		return true
	}
	return false
}
