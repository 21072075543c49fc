package clustertest

import (
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/rollcall-io/rollcall/internal/app"
)

// output is a standard output that all nodes share.
type output struct {
	mu   sync.Mutex
	text strings.Builder
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(b)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

var passwordLine = regexp.MustCompile(`password, shown only this once: (\S+)\n`)

// call sends a request with a token.
func (m *Member) call(t *testing.T, method, target, token, form string) (int, string) {
	t.Helper()
	req, err := http.NewRequest(method, m.HTTP+target, strings.NewReader(form))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := (&http.Client{Timeout: clientTimeout, Transport: m.c.transport}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

func (m *Member) login(t *testing.T, user, password string) string {
	t.Helper()
	status, body := m.call(t, http.MethodPost, "/nacos/v1/auth/login", "", url.Values{"username": {user}, "password": {password}}.Encode())
	var answer struct{ AccessToken string }
	if err := json.Unmarshal([]byte(body), &answer); err != nil || status != 200 {
		t.Fatalf("login of %s on %s: %d %s", user, m.ID, status, body)
	}
	return answer.AccessToken
}

// The first start prints one password; a login at one node is good at every node, before
// and after all were restarted, and a permission granted at one holds at all.
func TestCluster_Accounts(t *testing.T) {
	out := new(output)
	c := Start(t, 3, func(o *app.Options) { o.Auth, o.Stdout = true, out })
	c.Until("a password", func() bool { return passwordLine.MatchString(out.String()) })
	password := passwordLine.FindStringSubmatch(out.String())[1]
	nodes := c.Members()
	c.Until("the accounts on all nodes", func() bool {
		for _, m := range nodes {
			if m.Node.State().Accounts().Key == "" {
				return false
			}
		}
		return true
	})
	admin := nodes[0].login(t, "admin", password)
	const list = "/nacos/v1/ns/instance/list?serviceName=svc&namespaceId=dev"
	for _, m := range nodes {
		if status, body := m.call(t, http.MethodGet, list, admin, ""); status != 200 {
			t.Errorf("token on %s: %d %s", m.ID, status, body)
		}
		if status, _ := m.call(t, http.MethodGet, list, "", ""); status != http.StatusForbidden {
			t.Errorf("no token on %s: %d", m.ID, status)
		}
	}
	follower := c.Followers()[0]
	for _, target := range []string{
		"/nacos/v1/auth/users?username=alice&password=secret", "/nacos/v1/auth/roles?role=dev&username=alice",
		"/nacos/v1/auth/permissions?role=dev&resource=dev:*:*&action=r",
	} {
		if status, body := follower.call(t, http.MethodPost, target, admin, ""); status != 200 {
			t.Fatalf("%s: %d %s", target, status, body)
		}
	}
	alice := follower.login(t, "alice", "secret")
	for range 2 {
		for _, m := range nodes {
			c.Until("alice may read on "+m.ID, func() bool {
				status, _ := m.call(t, http.MethodGet, list, alice, "")
				return status == 200
			})
			if status, _ := m.call(t, http.MethodPost, "/nacos/v1/ns/instance?serviceName=svc&namespaceId=dev&ip=10.0.0.1&port=1", alice, ""); status != http.StatusForbidden {
				t.Errorf("alice may write on %s: %d", m.ID, status)
			}
		}
		for _, m := range nodes {
			m.Stop()
		}
		for _, m := range nodes {
			m.Start()
		}
		c.WaitReady()
	}
	if n := len(passwordLine.FindAllString(out.String(), -1)); n != 1 {
		t.Errorf("%d passwords were printed:\n%s", n, out)
	}
}

// A stream ends when its caller may no longer see what it tells.
func TestCluster_WatchEndsWithThePermission(t *testing.T) {
	out := new(output)
	c := Start(t, 1, func(o *app.Options) { o.Auth, o.Stdout = true, out })
	c.Until("a password", func() bool { return passwordLine.MatchString(out.String()) })
	m := c.Leader()
	admin := m.login(t, "admin", passwordLine.FindStringSubmatch(out.String())[1])
	set := func(method, target string) {
		t.Helper()
		if status, body := m.call(t, method, target, admin, ""); status != 200 {
			t.Fatalf("%s: %d %s", target, status, body)
		}
	}
	const permission = "/nacos/v1/auth/permissions?role=dev&resource=dev:*:*&action=r"
	set(http.MethodPost, "/nacos/v1/auth/users?username=alice&password=secret")
	set(http.MethodPost, "/nacos/v1/auth/roles?role=dev&username=alice")
	set(http.MethodPost, permission)
	req, err := http.NewRequest(http.MethodGet, m.HTTP+"/api/v1/watch?namespace=dev&service=svc", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.SetBasicAuth("alice", "secret")
	resp, err := (&http.Client{Timeout: patience, Transport: c.transport}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("watch: %s", resp.Status)
	}
	set(http.MethodDelete, permission)
	set(http.MethodPost, "/nacos/v1/ns/instance?serviceName=svc&namespaceId=dev&ip=10.9.8.7&port=1")
	text, err := io.ReadAll(resp.Body) // to the end of the stream
	if err != nil || strings.Contains(string(text), "10.9.8.7") {
		t.Errorf("the stream told %s, %v", text, err)
	}
}
