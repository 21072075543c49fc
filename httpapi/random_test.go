package httpapi_test

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rollcall-io/rollcall/httpapi"
	"github.com/rollcall-io/rollcall/internal/app"
	"github.com/rollcall-io/rollcall/internal/clustertest"
)

const randomRequests = 10_000

// values are what a random request gives a parameter: good ones, borderline ones and bad
// ones. A parameter without a row takes from `other`.
// Nobody is unhealthy in them: the next beat of such an instance is answered at once and
// makes it healthy a moment later, which would look like the trace of a refused request.
var values = map[string][]string{
	"serviceName": {"a", "a", "b", "c:1", "G@@a", "a@@b@@c", "@@", "g@@", "@@x", "", " ", "a b", "中", "<script>", strings.Repeat("x", 600)},
	"dom":         {"a", "G@@a", ""},
	"groupName":   {"G", "DEFAULT_GROUP", "", "*", "a b", strings.Repeat("g", 200)},
	"namespaceId": {"public", "dev", "dev", "", "a b", "default", strings.Repeat("n", 200)},
	"ip":          {"10.0.0.1", "10.0.0.1", "10.0.0.2", "::1", "host", "999.1.1.1", "", "[::1]", "1.1.1.1:80"},
	"port":        {"80", "80", "81", "0", "-1", "65536", "x", "", "80.5", "99999999999"},
	"clusterName": {"DEFAULT", "c1", "", "a_b", "a b", "None"},
	"cluster":     {"c1", `{"name":"c2"}`, "{"},
	"clusters":    {"", "DEFAULT", "c1,DEFAULT", ",,", "x"},
	"weight":      {"1", "0", "0.001", "-1", "10001", "NaN", "x", "1e309", ""},
	"enabled":     {"true", "false", "1", "maybe"}, "healthy": {"true", "on", ""},
	"ephemeral": {"true", "false", "", "x"}, "healthyOnly": {"true", "false", "maybe"},
	"metadata":         {"", "{}", `{"a":"1"}`, "a=1,b=2", "a", "null", `{"a":{"b":1}}`, "a=b=c", `{"preserved.heart.beat.timeout":"1"}`, "[1]"},
	"beat":             {`{"ip":"10.0.0.1","port":80}`, `{"ip":"10.0.0.3","port":80,"weight":2}`, "{}", "{", "null", "[]", `"x"`, ""},
	"protectThreshold": {"0", "0.5", "x", "2", "NaN", "-1"},
	"selector":         {`{"type":"none"}`, `{"type":"label","expression":"CONSUMER.label.A = PROVIDER.label.A"}`, `{"type":"zzz"}`, "{", `{"type":"label","expression":"x"}`},
	"healthChecker":    {`{"type":"TCP"}`, `{"type":"NONE"}`, `{"type":"HTTP","path":"/"}`, `{"type":"x"}`, "{"},
	"checkPort":        {"80", "0", "x"}, "useInstancePort4Check": {"true", "x"},
	"pageNo": {"1", "0", "2", "-1", "x", "99999"}, "pageSize": {"10", "0", "-1", "2147483647", "x"},
	"key":             {"G@@a", "dev##G@@a", "a", "", "##", "@@"},
	"instances":       {`[{"ip":"10.0.0.1","port":80}]`, "[]", "x", `[{"ip":1}]`, `[1]`},
	"consistencyType": {"ephemeral", "persist", "", "x"},
	"entry":           {"pushEnabled", "clientBeatInterval", "zzz", ""}, "value": {"true", "6000", "x", ""},
	"customNamespaceId": {"dev", "", "a b", "public"}, "namespaceName": {"Dev", "", "a@b"}, "namespace": {"dev", "none", ""},
	"namespaceShowName": {"Dev", ""}, "logName": {"zzz"}, "logLevel": {"warn", "loud"},
	"username": {"alice", "bob", "", "a\nb"}, "password": {"secret", ""}, "newPassword": {"x", ""},
	"role": {"ops", "ROLE_ADMIN", "", " x"}, "resource": {"dev:*:*", "", "*"}, "action": {"r", "rw", "all"},
	"clientId": {"10.0.0.1:80#true", "x", "::1:80#false", "#true"}, "expr": {"a", "(", strings.Repeat("(a*)*", 60)},
	"udpPort": {"0", "x", "70000"}, "clientIP": {"127.0.0.1", "x"}, "consistency": {"linearizable", "local", "x"},
	"encoding": {"GBK", "UTF-8", "klingon"}, "withInstances": {"true", "maybe"}, "serviceNameParam": {"a", "["},
	"other": {"", "x", "1", "true", "{", "[", "\x00", "\xff\xfe", "%", "中"},
}

// demanded are the texts with which Nacos 1.4.7 answers 5xx to what clients get wrong.
var demanded = regexp.MustCompile(`^(caused: (` + strings.Join([]string{
	`Required request parameter '\w+' for method parameter type (String|int) is not present;`,
	`Request method '.*' not supported;`, `metadata format incorrect:[\s\S]*;`, `instance format invalid: The weights range from 0.0 to 10000.0;`,
	`no service [\s\S]* found!;`, `no ips found for cluster [\s\S]* in service [\s\S]*;`, `no matched ip found!;`,
	`service not found, namespace: [\s\S]*;`, `instance not exist: [\s\S]*;`, `service [\s\S]* (is )?not found!;`, `service not found:[\s\S]*;`,
	`cluster [\s\S]* is not found!;`, `service: [\s\S]* not found\.;`, `serviceName not found: [\s\S]*;`, `parse expression failed!;`,
	`Failed to convert value of type [\s\S]*;`,
}, "|") + `)|.*no such api:[\s\S]*|\{"code":500,"message":"caused: Request method .*|<html>.*status=501[\s\S]*)$`)

// randomRequest draws a request to one of the routes, or to a path or with a verb that
// none has.
func randomRequest(r *rand.Rand, base string, routes [][2]string, names []string) *http.Request {
	route := routes[r.IntN(len(routes))]
	method, path := route[0], route[1]
	if r.IntN(12) == 0 {
		method = []string{"GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "BREW"}[r.IntN(8)]
	}
	if r.IntN(20) == 0 {
		path += []string{"/", "x", "/x", "/%3Cb%3E"}[r.IntN(4)]
	}
	query, form := url.Values{}, url.Values{}
	for _, name := range []string{"serviceName", "ip", "port"} { // what most need
		if r.IntN(8) > 0 {
			query.Set(name, values[name][r.IntN(3)])
		}
	}
	for range r.IntN(8) {
		name := names[r.IntN(len(names))]
		from := query
		if r.IntN(3) == 0 {
			from = form
		}
		from.Add(name, values[name][r.IntN(len(values[name]))])
	}
	body := form.Encode()
	if r.IntN(25) == 0 {
		body = []string{`{"serviceName":"a","ip":"10.0.0.1","port":80}`, "\x1f\x8b\x00", "a=%ZZ&b", "&&&=", "[]"}[r.IntN(5)]
	}
	req, _ := http.NewRequest(method, base+path, bytes.NewReader([]byte(body)))
	req.URL.RawQuery = query.Encode()
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	for _, h := range [][2]string{
		{"Content-Type", "application/json"}, {"Content-Type", "multipart/form-data; boundary=x"}, {"Content-Encoding", "gzip"},
		{"Accept", "text/html"}, {"Accept", "application/json"}, {"User-Agent", "Nacos-Java-Client:v1.4.7"}, {"User-Agent", "Nacos-Server"},
		{"X-Rollcall-Consistency", "x"}, {"Authorization", "Bearer x"},
	} {
		if r.IntN(30) == 0 {
			req.Header.Set(h[0], h[1])
		}
	}
	return req
}

// fingerprint is everything that a client can change, as text.
func fingerprint(n *app.Node) string {
	var b strings.Builder
	state := n.State()
	for _, id := range state.NamespaceIDs() {
		for _, s := range state.Services(id) {
			fmt.Fprintf(&b, "%s %d %d %d %t %d\n", s.Key, s.Revision, s.Stamp, s.Len(), s.Manual, len(s.Clusters))
		}
	}
	fmt.Fprintf(&b, "%q %+v %+v %+v", state.NamespaceIDs(), state.Namespaces(), state.Switches(), *state.Accounts())
	return b.String()
}

// Nothing that a client can send makes a node fail in a way of its own, or leaves a trace
// when it was refused.
func TestRandomRequests(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	c := clustertest.Start(t, 1, func(o *app.Options) { o.EmptyServiceTTL = 0 })
	m := c.Leader()
	// Time alone must change nothing while this goes on.
	if a, err := m.Do(http.MethodPut, "/operator/switches", "entry=check&value=false"); err != nil || a.Status != 200 {
		t.Fatal(a, err)
	}
	var routes [][2]string
	for _, rt := range httpapi.Routes() {
		if rt[1] != "/api/v1/watch" { // an answer without an end
			routes = append(routes, rt)
		}
	}
	names := slices.Sorted(maps.Keys(values))
	client := &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{DisableCompression: true}}
	defer client.CloseIdleConnections()
	statuses := make(map[int]int)
	before := fingerprint(m.Node)
	requests := randomRequests
	if testing.Short() {
		requests /= 10
	}
	for i := range requests {
		req := randomRequest(r, m.HTTP, routes, names)
		resp, err := client.Do(req)
		if err != nil {
			t.Fatalf("request %d %s %s: %v", i, req.Method, req.URL, err)
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		statuses[resp.StatusCode]++
		after := fingerprint(m.Node)
		switch {
		case resp.StatusCode >= 500 && req.Method != http.MethodHead && !demanded.Match(body):
			t.Errorf("request %d %s %s %v: %d %s", i, req.Method, req.URL, req.Header, resp.StatusCode, body)
		case resp.StatusCode >= 400 && after != before:
			t.Errorf("request %d %s %s: %d %s, yet the state changed from\n%s\nto\n%s", i, req.Method, req.URL, resp.StatusCode, body, before, after)
		}
		before = after
		if t.Failed() {
			t.Fatalf("stopped after request %d", i)
		}
	}
	t.Logf("%d requests to %d routes, by status: %v", requests, len(routes), statuses)
	if statuses[200] < requests/10 || statuses[400] < requests/10 {
		t.Errorf("the requests are too one-sided: %v", statuses)
	}
}

// Whatever a caller sends whose role may write one namespace, nothing outside of it changes.
func TestRandomRequests_OfARestrictedCaller(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	out := new(output)
	c := clustertest.Start(t, 1, func(o *app.Options) { o.EmptyServiceTTL, o.Auth, o.Stdout = 0, true, out })
	m := c.Leader()
	c.Until("a password", func() bool { return out.password() != "" })
	post := func(method, path, form string) {
		t.Helper()
		req := must(http.NewRequest(method, m.HTTP+path+"?"+form, nil))
		req.SetBasicAuth("admin", out.password())
		resp := must(http.DefaultClient.Do(req))
		defer resp.Body.Close()
		if body := must(io.ReadAll(resp.Body)); resp.StatusCode != 200 {
			t.Fatalf("%s: %d %s", path, resp.StatusCode, body)
		}
	}
	defer http.DefaultClient.CloseIdleConnections()
	post("PUT", "/nacos/v1/ns/operator/switches", "entry=check&value=false") // time alone must change nothing
	post("POST", "/nacos/v1/auth/users", "username=mallory&password=secret")
	post("POST", "/nacos/v1/auth/roles", "username=mallory&role=dev")
	post("POST", "/nacos/v1/auth/permissions", "role=dev&resource=dev:*:*&action=rw")
	post("POST", "/nacos/v1/ns/instance", "serviceName=a&ip=10.0.0.1&port=80")
	post("POST", "/nacos/v1/ns/instance", "serviceName=a&ip=10.0.0.1&port=80&namespaceId=default")
	before := outside(m.Node, "dev")
	client := &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{DisableCompression: true}}
	defer client.CloseIdleConnections()
	names := slices.Sorted(maps.Keys(values))
	statuses := make(map[int]int)
	for i := range randomRequests / 4 {
		req := randomRequest(r, m.HTTP, httpapi.Routes(), names)
		if strings.Contains(req.URL.Path, "/api/v1/") || strings.Contains(req.URL.RawQuery, "newPassword") {
			continue // an answer without an end; the caller's own password
		}
		req.SetBasicAuth("mallory", "secret")
		resp, err := client.Do(req)
		if err != nil {
			t.Fatalf("request %d %s %s: %v", i, req.Method, req.URL, err)
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		statuses[resp.StatusCode]++
		if after := outside(m.Node, "dev"); after != before {
			t.Fatalf("request %d %s %s: %d %s changed\n%s\ninto\n%s", i, req.Method, req.URL, resp.StatusCode, body, before, after)
		}
	}
	t.Logf("by status: %v", statuses)
	if statuses[200] == 0 || statuses[403] == 0 {
		t.Errorf("the requests are too one-sided: %v", statuses)
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// outside is the fingerprint without the services of a namespace.
func outside(n *app.Node, namespace string) string {
	var kept []string
	for _, line := range strings.Split(fingerprint(n), "\n") {
		if !strings.HasPrefix(line, namespace+"/") {
			kept = append(kept, line)
		}
	}
	return strings.ReplaceAll(strings.Join(kept, "\n"), `"`+namespace+`" `, "")
}

// output takes what a node prints.
type output struct {
	mu   sync.Mutex
	text string
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.text += string(b)
	return len(b), nil
}

// password is the one that was printed, "" before.
func (o *output) password() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	_, password, _ := strings.Cut(o.text, "once: ")
	return strings.TrimSpace(password)
}
