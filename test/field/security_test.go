package field

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rollcall-io/rollcall/auth"
	"github.com/rollcall-io/rollcall/internal/app"
	"github.com/rollcall-io/rollcall/internal/clustertest"
	"github.com/rollcall-io/rollcall/registry"
)

// guarded is a cluster with accounts.
type guarded struct {
	*cluster
	admin, password string
}

// startGuarded starts a cluster that asks for accounts and reads the password of admin
// where the first start prints it.
func startGuarded(t *testing.T) *guarded {
	t.Helper()
	var mu sync.Mutex
	var printed strings.Builder
	out := writerFunc(func(b []byte) (int, error) {
		mu.Lock()
		defer mu.Unlock()
		return printed.Write(b)
	})
	g := &guarded{cluster: clustertest.Start(t, 3, func(o *app.Options) { o.Auth, o.Stdout = true, out })}
	g.Until("a password", func() bool {
		mu.Lock()
		defer mu.Unlock()
		_, rest, found := strings.Cut(printed.String(), "shown only this once: ")
		g.password, _, _ = strings.Cut(rest, "\n")
		return found && strings.HasSuffix(rest, "\n")
	})
	for _, m := range g.Members() {
		g.Until("the accounts on "+m.ID, func() bool { return m.Node.State().Accounts().Key != "" })
	}
	g.admin = g.user(t, "admin").Name
	return g
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

func (g *guarded) user(t *testing.T, name string) registry.User {
	t.Helper()
	u, found := g.Leader().Node.State().Accounts().User(name)
	if !found {
		t.Fatalf("no user %s", name)
	}
	return u
}

// token is what a node would give the user at a time.
func (g *guarded) token(t *testing.T, name string, at time.Time) string {
	t.Helper()
	return auth.New(auth.Options{Accounts: g.Leader().Node.State().Accounts, Now: func() time.Time { return at }}).Token(g.user(t, name))
}

// login tries a password from an address of the loopback network and returns status, text
// and token. It may be called from any goroutine.
func login(m *member, from, user, password string) (status int, text, token string) {
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	transport := &http.Transport{DialContext: dialer.DialContext, DisableKeepAlives: true}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport, Timeout: 30 * time.Second}
	resp, err := client.PostForm(m.HTTP+"/nacos/v1/auth/login", url.Values{"username": {user}, "password": {password}})
	if err != nil {
		return 0, err.Error(), ""
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err.Error(), ""
	}
	var answer struct{ AccessToken string }
	_ = json.Unmarshal(body, &answer) // a refusal is a text
	return resp.StatusCode, string(body), answer.AccessToken
}

// sampleKey is the signing key that was in the sample configuration of Nacos for years.
const sampleKey = "SecretKey012345678901234567890123456789012345678901234567890123456789"

// forgeries are tokens that prove nothing, made from a good one of alice.
func (g *guarded) forgeries(t *testing.T) map[string]string {
	t.Helper()
	good := g.token(t, "alice", time.Now())
	parts := strings.Split(good, ".")
	signed := func(key, head, body string) string {
		h := hmac.New(sha256.New, []byte(key))
		h.Write([]byte(head + "." + body))
		return head + "." + body + "." + base64.RawURLEncoding.EncodeToString(h.Sum(nil))
	}
	claim := func(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }
	admin := claim(`{"sub":"admin","exp":9999999999}`)
	rawKey, err := base64.StdEncoding.DecodeString(sampleKey[:68]) // whole groups of four
	if err != nil {
		t.Fatal(err)
	}
	return map[string]string{
		"sample key": signed(sampleKey, parts[0], admin), "sample key, decoded": signed(string(rawKey), parts[0], admin),
		"sample key, old claims": signed(sampleKey, parts[0], parts[1]), "empty key": signed("", parts[0], parts[1]),
		"alg none": claim(`{"alg":"none","typ":"JWT"}`) + "." + admin + ".", "none, unsigned": claim(`{"alg":"none"}`) + "." + parts[1],
		"another user": parts[0] + "." + admin + "." + parts[2], "one letter": good[:len(good)-1] + "-",
		"expired": g.token(t, "alice", time.Now().Add(-24*time.Hour)), "nothing": "", "two dots": "..",
	}
}

// TestAccounts_NoBackDoorThroughAnyNode looks at a cluster that asks for accounts, through
// the leader and through a follower.
func TestAccounts_NoBackDoorThroughAnyNode(t *testing.T) {
	if address := app.DefaultOptions().DebugAddr; address != "" {
		t.Errorf("the profiler is on at %q unless it is turned off", address)
	}
	g := startGuarded(t)
	for _, made := range []string{"users?username=alice&password=secret", "roles?role=dev&username=alice", "permissions?role=dev&resource=*:*:*&action=rw"} {
		path, params, _ := strings.Cut(made, "?")
		must(t, g.Leader(), http.MethodPost, "/nacos/v1/auth/"+path, params+"&accessToken="+g.token(t, "admin", time.Now()))
	}
	for _, m := range g.Members() {
		g.Until("alice's permission on "+m.ID, func() bool {
			a := raw(t, m, step{method: http.MethodGet, target: prefix + "/service/list?pageNo=1&pageSize=1&accessToken=" + g.token(t, "alice", time.Now())})
			return a.status == http.StatusOK
		})
	}
	t.Run("MagicUserAgent", g.magicUserAgent)
	t.Run("ForgedToken", g.forgedToken)
	t.Run("LeftoverAdminEndpoints", g.leftovers)
	t.Run("PasswordGuessing", g.guessing)
}

// refused sends a request that must be answered with one of the statuses everywhere, and
// change nothing.
func (g *guarded) refused(t *testing.T, s step, statuses ...int) {
	t.Helper()
	for through, m := range throughBoth(g.cluster) {
		before := m.Node.State().Accounts()
		a := raw(t, m, s)
		if fits := strings.Contains(fmt.Sprint(statuses), fmt.Sprint(a.status)); !fits {
			t.Errorf("%s %s %v through the %s: %d %s, want %v", s.method, s.target, s.headers, through, a.status, a.body, statuses)
		}
		if services, instances := m.Node.State().Counts(); services+instances != 0 || m.Node.State().Accounts() != before {
			t.Fatalf("%s %s %v through the %s left a trace", s.method, s.target, s.headers, through)
		}
	}
}

// magicUserAgent: requests with the server's own User-Agent were trusted, and a node added
// it to what it passed on (alibaba/nacos #3237, #4593, #8166, #7103, CVE-2021-29441).
func (g *guarded) magicUserAgent(t *testing.T) {
	for _, agent := range []string{"Nacos-Server", "nacos-server", "Nacos-Server/1.4", ""} {
		for _, call := range []step{
			{method: http.MethodPost, target: prefix + "/instance?serviceName=svc&ip=10.1.0.1&port=80"},
			{method: http.MethodPut, target: prefix + "/instance/beat?serviceName=svc&beat=" + url.QueryEscape(`{"ip":"10.1.0.1","port":80}`)},
			{method: http.MethodGet, target: prefix + "/instance/list?serviceName=svc"},
			{method: http.MethodGet, target: "/nacos/v1/auth/users?pageNo=1&pageSize=9"},
			{method: http.MethodPost, target: "/nacos/v1/auth/users?username=eve"},
			{method: http.MethodPut, target: "/nacos/v1/auth/users?username=admin&newPassword=eve"},
		} {
			call.headers = []string{"User-Agent: " + agent}
			g.refused(t, call, http.StatusForbidden)
		}
	}
}

// forgedToken: with the signing key of the sample configuration anybody made a token of an
// administrator (alibaba/nacos #10060, #7127, #13697, #1382). Here there is no key to set:
// each cluster makes its own.
func (g *guarded) forgedToken(t *testing.T) {
	for name, token := range g.forgeries(t) {
		g.refused(t, step{method: http.MethodPost, target: prefix + "/instance?serviceName=svc&ip=10.1.0.1&port=80&accessToken=" + token}, http.StatusForbidden)
		g.refused(t, step{method: http.MethodGet, target: "/nacos/v1/auth/users?pageNo=1&pageSize=9", headers: []string{"Authorization: Bearer " + token}}, http.StatusForbidden)
		if t.Failed() {
			t.Fatalf("with the token %q", name)
		}
	}
	if key := g.Leader().Node.State().Accounts().Key; len(key) < 32 || key == sampleKey {
		t.Errorf("the cluster's key is %q", key)
	}
}

// leftovers: operations took SQL or Raft commands without a login (alibaba/nacos #4463,
// #8866, #10613, CVE-2021-29442, #14001), metrics and profiles were open (#7148, #15374).
func (g *guarded) leftovers(t *testing.T) {
	for _, target := range []string{
		"GET /nacos/v1/cs/ops/derby?sql=select%201", "POST /nacos/v1/cs/ops/data/removal", "POST /nacos/v1/core/ops/raft",
		"GET /nacos/v1/ns/raft/state", "POST /nacos/v1/ns/raft/vote", "DELETE /nacos/v1/ns/raft/datum", "PUT /nacos/v1/ns/distro/datum",
		"GET /nacos/v1/ns/distro/datums", "GET /nacos/v1/core/cluster/nodes", "POST /nacos/v1/core/cluster/server/leave",
		"GET /metrics", "GET /debug/pprof/", "GET /debug/vars", "GET /nacos/actuator/env", "GET /nacos/actuator/heapdump", "GET /nacos/v1/console/server/state",
		"PUT /nacos/v1/ns/operator/switches?entry=check&value=false", "GET /api/v1/status", "GET /api/v1/watch?services=*",
	} {
		method, path, _ := strings.Cut(target, " ")
		g.refused(t, step{method: method, target: path}, http.StatusForbidden, http.StatusNotFound, http.StatusNotImplemented)
	}
}

// guessing: the login took passwords without a limit (alibaba/nacos #1918). Each node
// counts for itself, so two nodes give twice as many tries and no more.
func (g *guarded) guessing(t *testing.T) {
	const tries = 300
	var wrong, held int
	for i := range tries {
		switch status, text, _ := login(g.Followers()[i%2], "127.0.0.1", "alice", "guess"); {
		case status == http.StatusForbidden && strings.Contains(text, "too many failed logins"):
			held++
		case status == http.StatusForbidden:
			wrong++
		default:
			t.Fatalf("a wrong password: %d %s", status, text)
		}
	}
	if held < tries/2 {
		t.Errorf("%d of %d guesses were tried, %d held up", wrong, tries, held)
	}
	m := g.Followers()[0]
	if status, text, token := login(m, "127.0.0.2", "alice", "secret"); status != http.StatusOK || token == "" {
		t.Errorf("the right password from another address: %d %s", status, text)
	}
	if status, text, _ := login(m, "127.0.0.1", g.admin, g.password); status != http.StatusOK {
		t.Errorf("another user from the same address: %d %s", status, text)
	}
}
