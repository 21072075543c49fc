package httpapi

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"golang.org/x/crypto/bcrypt"

	"github.com/hashicorp/go-hclog"

	"github.com/rollcall-io/rollcall/auth"
	"github.com/rollcall-io/rollcall/registry"
)

// newGuardedServer asks for accounts: admin, whose password is `root`, and alice with the
// password `secret`, whose role may read and write the namespace dev and read the service
// G@@shown of the default one.
func newGuardedServer(t *testing.T, change func(*Options)) (*Server, *fake) {
	t.Helper()
	s, f := newTestServer(t, func(o *Options) {
		o.Enforce = true
		o.Auth = auth.New(auth.Options{Accounts: o.Reader.Accounts, Cost: bcrypt.MinCost})
		if change != nil {
			change(o)
		}
	})
	user := func(name, password string) registry.User {
		hash, err := s.opts.Auth.Hash(context.Background(), password)
		if err != nil {
			t.Fatal(err)
		}
		return registry.User{Name: name, Hash: hash}
	}
	for _, c := range []registry.Command{
		registry.AuthInit{Key: auth.NewKey(), Admin: user("admin", "root")},
		registry.UserCreate{User: user("alice", "secret")},
		registry.RoleAdd{Binding: registry.RoleBinding{Role: "dev", User: "alice"}},
		registry.PermissionAdd{Permission: registry.Permission{Role: "dev", Resource: "dev:*:*", Action: "rw"}},
		registry.PermissionAdd{Permission: registry.Permission{Role: "dev", Resource: ":G:naming/shown", Action: "r"}},
		registry.NamespaceCreate{Namespace: registry.Namespace{ID: "dev", Name: "Dev"}},
	} {
		if _, err := f.Propose(context.Background(), c); err != nil {
			t.Fatal(err)
		}
	}
	return s, f
}

func tokenOf(t *testing.T, s *Server, name string) string {
	t.Helper()
	u, found := s.opts.Reader.Accounts().User(name)
	if !found {
		t.Fatalf("no user %s", name)
	}
	return s.opts.Auth.Token(u)
}

// target is a route's path with something for its parameter.
func (rt route) target() string { return strings.Replace(rt.path, ":key", "G%40%40a", 1) }

// Every route declares what it asks for, and with accounts none but login and the probes
// answers without: not to magic names of clients, made-up headers or bad tokens. Requests
// with the User-Agent of a server were trusted (alibaba/nacos #3237, #4593, CVE-2021-29441).
func TestAuth_EveryRouteIsGuarded(t *testing.T) {
	t.Parallel()
	s, f := newGuardedServer(t, nil)
	proposed := len(f.proposed)
	open := map[string]bool{"/livez": true, "/readyz": true, "/nacos/actuator/health": true,
		consolePrefix + "/health/liveness": true, consolePrefix + "/health/readiness": true,
		v2ConsolePrefix + "/health/liveness": true, v2ConsolePrefix + "/health/readiness": true,
		authPrefix + "/login": true, authPrefix + "/users/login": true}
	disguises := []http.Header{
		{}, {"User-Agent": {"Nacos-Server"}}, {"User-Agent": {"nacos-server"}}, {"User-Agent": {"Nacos-Server/1.4"}},
		{"Serveridentity": {"security"}}, {"X-Forwarded-For": {"127.0.0.1"}}, {"Authorization": {"Bearer x.y.z"}},
		{"Authorization": {"Bearer " + tokenWhenOff}}, {"Authorization": {"Basic YWRtaW46eA=="}},
	}
	for _, rt := range allRoutes() {
		if rt.access.right == rightUndeclared {
			t.Errorf("%s %s declares no permission", rt.method, rt.path)
		}
		if open[rt.path] != (rt.access.right == rightNone) {
			t.Errorf("%s %s: open is %t", rt.method, rt.path, rt.access.right == rightNone)
		}
		if open[rt.path] {
			continue
		}
		for _, path := range []string{rt.target(), rt.target() + "/"} {
			for _, h := range disguises {
				req := httptest.NewRequest(rt.method, path+"?serviceName=G%40%40shown&ip=10.0.0.1&port=80", nil)
				req.Header = h
				w := httptest.NewRecorder()
				s.Handler().ServeHTTP(w, req)
				if w.Code != http.StatusForbidden || !strings.Contains(w.Body.String(), `"error":"Forbidden"`) {
					t.Errorf("%s %s with %v: %d %s", rt.method, path, h, w.Code, w.Body)
				}
			}
		}
	}
	if len(f.proposed) != proposed {
		t.Errorf("proposed %v", f.proposed[proposed:])
	}
}

func ask(s *Server, method, target, token string) *httptest.ResponseRecorder {
	req := httptest.NewRequest(method, target, nil)
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, req)
	return w
}

func TestAuth_Permissions(t *testing.T) {
	t.Parallel()
	s, _ := newGuardedServer(t, nil)
	admin, alice := tokenOf(t, s, "admin"), tokenOf(t, s, "alice")
	const instance = nsPrefix + "/instance?ip=10.0.0.1&port=80&"
	const list = nsPrefix + "/instance/list?"
	for _, tc := range []struct {
		method, target string
		alice          int
	}{
		{"POST", instance + "serviceName=a&namespaceId=dev", 200},
		{"POST", instance + "serviceName=a", 403},
		{"POST", instance + "serviceName=a&namespaceId=prod", 403},
		{"PUT", nsPrefix + "/instance/beat?serviceName=a&namespaceId=dev&ip=10.0.0.1&port=80", 200},
		{"PUT", nsPrefix + "/instance/beat?serviceName=a&ip=10.0.0.1&port=80", 403},
		{"GET", list + "serviceName=a&namespaceId=dev", 200},
		{"GET", list + "serviceName=G%40%40shown", 200},
		{"GET", list + "serviceName=shown&groupName=G", 200},
		{"GET", list + "dom=G%40%40shown", 200},
		{"GET", list + "serviceName=G%40%40hidden", 403},
		{"POST", instance + "serviceName=G%40%40shown", 403},
		{"POST", v2NsPrefix + "/instance?ip=10.0.0.1&port=80&serviceName=a&namespaceId=dev", 200},
		{"POST", v2NsPrefix + "/instance?ip=10.0.0.1&port=80&serviceName=a", 403},
		{"GET", v2NsPrefix + "/instance/statuses/dev%23%23G%40%40a", 200},
		{"GET", v2NsPrefix + "/instance/statuses/G%40%40a", 403},
		{"GET", nsPrefix + "/instance/statuses?key=dev%23%23DEFAULT_GROUP%40%40a", 200},
		{"GET", nsPrefix + "/instance/statuses?key=G%40%40a&namespaceId=dev&serviceName=a", 403},
		// a service that may be read does not open the namespace that it is in
		{"GET", nsPrefix + "/service/list?pageNo=1&pageSize=1&serviceName=G%40%40shown", 403},
		{"GET", nsPrefix + "/service/list?pageNo=1&pageSize=1&namespaceId=dev", 200},
		{"GET", nsPrefix + "/catalog/services?pageNo=1&pageSize=1&serviceName=G%40%40shown", 403},
		{"GET", nsPrefix + "/service/subscribers?serviceName=G%40%40shown", 403},
		{"GET", nsPrefix + "/service/names?namespaceId=dev", 200},
		{"GET", nsPrefix + "/service/names", 403},
		{"GET", nsPrefix + "/api/allDomNames?namespaceId=dev", 403},
		{"GET", nsPrefix + "/api/srvIPXT?dom=hidden&serviceName=G%40%40shown", 403},
		{"GET", nsPrefix + "/api/srvIPXT?dom=G%40%40shown&serviceName=hidden", 200},
		{"GET", "/api/v1/watch?namespace=prod&namespaceId=dev", 403},
		{"GET", v2NsPrefix + "/client/list?namespaceId=dev", 403},
		// what shows nothing of a namespace
		{"GET", nsPrefix + "/operator/metrics", 200},
		{"GET", consolePrefix + "/server/state", 200},
		{"GET", consolePrefix + "/namespaces", 200},
		{"GET", "/metrics", 200},
		// what only administrators may
		{"PUT", nsPrefix + "/operator/switches?entry=check&value=true", 403},
		{"POST", consolePrefix + "/namespaces?customNamespaceId=x&namespaceName=x", 403},
		{"GET", authPrefix + "/users?pageNo=1&pageSize=10", 403},
		{"POST", authPrefix + "/users?username=eve&password=x", 403},
		{"PUT", authPrefix + "/users?username=admin&newPassword=x", 403},
		{"DELETE", authPrefix + "/users?username=bob", 403},
		{"PUT", corePrefix + "/ops/log?logName=x&logLevel=info", 403},
	} {
		if w := ask(s, tc.method, tc.target, alice); w.Code != tc.alice {
			t.Errorf("alice %s %s: %d %s, want %d", tc.method, tc.target, w.Code, w.Body, tc.alice)
		} else if tc.alice == 403 && !strings.Contains(w.Body.String(), `"message":"authorization failed!"`) {
			t.Errorf("alice %s %s: %s", tc.method, tc.target, w.Body)
		}
		if strings.Contains(tc.target, "watch") || strings.Contains(tc.target, "newPassword") {
			continue // a stream; a change that ends admin's token
		}
		if w := ask(s, tc.method, tc.target, admin); w.Code == 403 {
			t.Errorf("admin %s %s: %d %s", tc.method, tc.target, w.Code, w.Body)
		}
	}
}

// Credentials may be in the header, in the query or in a form.
func TestAuth_Sources(t *testing.T) {
	t.Parallel()
	s, _ := newGuardedServer(t, nil)
	token := tokenOf(t, s, "alice")
	const path = nsPrefix + "/instance/list"
	query := "serviceName=a&namespaceId=dev"
	for name, tc := range map[string]struct {
		query, form, header string
		want                string
	}{
		"header":              {query, "", "Bearer " + token, ""},
		"header, small":       {query, "", "bearer " + token, ""},
		"query":               {query + "&accessToken=" + token, "", "", ""},
		"form":                {query, "accessToken=" + token, "", ""},
		"password":            {query + "&username=alice&password=secret", "", "", ""},
		"password in a form":  {query, "username=alice&password=secret", "", ""},
		"basic":               {query, "", "Basic YWxpY2U6c2VjcmV0", ""},
		"nothing":             {query, "", "", "unknown user!"},
		"user alone":          {query + "&username=alice", "", "", "unknown user!"},
		"wrong password":      {query + "&username=alice&password=x", "", "", "unknown user!"},
		"a bad token":         {query + "&accessToken=x", "", "", "token invalid!"},
		"a bad header counts": {query + "&accessToken=" + token, "", "Bearer x", "token invalid!"},
	} {
		req := httptest.NewRequest(http.MethodGet, path+"?"+tc.query, strings.NewReader(tc.form))
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		if tc.header != "" {
			req.Header.Set("Authorization", tc.header)
		}
		w := httptest.NewRecorder()
		s.Handler().ServeHTTP(w, req)
		if tc.want == "" && w.Code != 200 || tc.want != "" && (w.Code != 403 || !strings.Contains(w.Body.String(), `"message":"`+tc.want+`"`)) {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
	}
}

func TestAuth_Login(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	s, _ := newGuardedServer(t, func(o *Options) {
		o.Logger = hclog.New(&hclog.LoggerOptions{Level: hclog.Trace, Output: &log})
	})
	login := func(user, password, from string) *httptest.ResponseRecorder {
		req := httptest.NewRequest(http.MethodPost, authPrefix+"/login", strings.NewReader(url.Values{"username": {user}, "password": {password}}.Encode()))
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		req.Header.Set("X-Forwarded-For", "203.0.113.9") // of no account
		req.RemoteAddr = from + ":1234"
		w := httptest.NewRecorder()
		s.Handler().ServeHTTP(w, req)
		return w
	}
	w := login("alice", "secret", "192.0.2.1")
	token, found := strings.CutPrefix(w.Header().Get("Authorization"), "Bearer ")
	if want := `{"accessToken":"` + token + `","tokenTtl":18000,"globalAdmin":false,"username":"alice"}`; !found || w.Body.String() != want {
		t.Errorf("login: %s, want %s", w.Body, want)
	}
	if w := ask(s, http.MethodGet, nsPrefix+"/service/names?namespaceId=dev", token); w.Code != 200 {
		t.Errorf("with that token: %d", w.Code)
	}
	if w := login("admin", "root", "192.0.2.1"); !strings.Contains(w.Body.String(), `"globalAdmin":true`) {
		t.Errorf("login of admin: %s", w.Body)
	}
	for range 1000 {
		if w := login("alice", "guessed-word", "192.0.2.7"); w.Code != http.StatusForbidden {
			t.Fatalf("wrong password: %d %s", w.Code, w.Body)
		}
	}
	// How long is left depends on how long the thousand took.
	if w := login("alice", "secret", "192.0.2.7"); w.Code != 403 || !strings.HasPrefix(w.Body.String(), "too many failed logins, try again in ") {
		t.Errorf("right password while locked out: %d %s", w.Code, w.Body)
	}
	if w := login("alice", "secret", "192.0.2.8"); w.Code != 200 {
		t.Errorf("right password from another address: %d %s", w.Code, w.Body)
	}
	if w := login("admin", "root", "192.0.2.7"); w.Code != 200 {
		t.Errorf("another user: %d %s", w.Code, w.Body)
	}
	if text := log.String(); strings.Contains(text, "secret") || strings.Contains(text, "guessed-word") || strings.Contains(text, token) ||
		strings.Count(text, "too many wrong passwords") != 1 {
		t.Errorf("log:\n%s", text)
	}
}

// A user changes the own password; the tokens of the old one end.
func TestAuth_OwnPassword(t *testing.T) {
	t.Parallel()
	s, _ := newGuardedServer(t, nil)
	alice := tokenOf(t, s, "alice")
	if w := ask(s, http.MethodPut, authPrefix+"/users?username=alice&newPassword=other", alice); w.Code != 200 {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	if w := ask(s, http.MethodGet, nsPrefix+"/service/names?namespaceId=dev", alice); !strings.Contains(w.Body.String(), "token invalid!") {
		t.Errorf("the old token: %d %s", w.Code, w.Body)
	}
	if w := ask(s, http.MethodGet, nsPrefix+"/service/names?namespaceId=dev&username=alice&password=other", ""); w.Code != 200 {
		t.Errorf("the new password: %d %s", w.Code, w.Body)
	}
}
