package httpapi

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rollcall-io/rollcall/registry"
)

const (
	listPath     = nsPrefix + "/instance/list?serviceName=svc"
	registerPath = nsPrefix + "/instance?serviceName=svc&ip=10.0.0.1&port=80"
)

func do(s *Server, method, target string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, httptest.NewRequest(method, target, nil))
	return w
}

// metric is the value of a metric without labels, as /metrics shows it.
func metric(t *testing.T, s *Server, name string) (value float64) {
	t.Helper()
	_, after, found := strings.Cut(do(s, http.MethodGet, "/metrics").Body.String(), "\n"+name+" ")
	if _, err := fmt.Sscan(after, &value); !found || err != nil {
		t.Fatalf("metric %s: %v", name, err)
	}
	return value
}

func wantAnswer(t *testing.T, w *httptest.ResponseRecorder, status int, body string) {
	t.Helper()
	if w.Code != status || w.Body.String() != body {
		t.Errorf("answered %d %q, want %d %q", w.Code, w.Body, status, body)
	}
}

// TestErrorTable_Complete reads the codes from the registry's source, so that a new one
// without a row fails here.
func TestErrorTable_Complete(t *testing.T) {
	t.Parallel()
	file, err := parser.ParseFile(token.NewFileSet(), "../registry/errors.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	codes := 0
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 {
			return true
		}
		if name, ok := spec.Type.(*ast.Ident); !ok || name.Name != "Code" {
			return true
		}
		var code registry.Code
		if _, err := fmt.Sscan(spec.Values[0].(*ast.BasicLit).Value, &code); err != nil {
			t.Fatal(err)
		}
		if _, found := errorTable[code]; !found {
			t.Errorf("no row for %s", spec.Names[0].Name)
		}
		codes++
		return true
	})
	if codes != len(errorTable) || codes < 20 {
		t.Errorf("%d codes in the source, %d rows", codes, len(errorTable))
	}
}

func TestErrorTable_Answers(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		err    error
		status int
		body   string
		retry  string
	}{
		{registry.ErrNoLeader, 503, "caused: no leader;", ""},
		{registry.ErrUncertain, 503, "caused: " + uncertainText + ";", ""},
		{fmt.Errorf("propose: %w", registry.ErrOverloaded), 503, "caused: too many requests in flight;", "1"},
		{registry.ErrNotReady, 503, notReadyText, ""},
		{registry.ErrTooManyInstances, 400, "caused: service is full;", ""},
		{context.DeadlineExceeded, 503, "caused: " + uncertainText + ";", ""},
		{errors.New("disk on fire"), 500, "caused: " + internalText + ";", ""},
		{&registry.Error{Code: 255}, 500, "caused: " + internalText + ";", ""},
	} {
		s, f := newTestServer(t, nil)
		f.propose = func(context.Context, registry.Command) (registry.Result, error) { return registry.Result{}, tc.err }
		w := do(s, http.MethodPost, registerPath)
		wantAnswer(t, w, tc.status, tc.body)
		if got := w.Header().Get("Retry-After"); got != tc.retry {
			t.Errorf("%v: Retry-After %q, want %q", tc.err, got, tc.retry)
		}
	}
}

// A node is STARTING until it was ready once; after that it goes on reading.
func TestServer_Readiness(t *testing.T) {
	t.Parallel()
	s, f := newTestServer(t, nil)
	f.notReady = registry.ErrNotReady.Because("3 entries behind")
	for _, target := range []string{listPath, nsPrefix + "/operator/metrics", nsPrefix + "/service/list?pageNo=1&pageSize=1"} {
		wantAnswer(t, do(s, http.MethodGet, target), 503, notReadyText)
	}
	wantAnswer(t, do(s, http.MethodPost, registerPath), 503, notReadyText)
	wantAnswer(t, do(s, http.MethodGet, "/readyz"), 503, "3 entries behind")
	wantAnswer(t, do(s, http.MethodGet, "/livez"), 200, "ok")
	wantAnswer(t, do(s, http.MethodGet, consolePrefix+"/health/readiness"), 500, "Naming is not in readiness")
	f.notReady = nil
	wantAnswer(t, do(s, http.MethodPost, registerPath), 200, "ok")
	f.notReady, f.leader = registry.ErrNotReady, ""
	if w := do(s, http.MethodGet, listPath); w.Code != 200 || !strings.Contains(w.Body.String(), "10.0.0.1") {
		t.Errorf("without a leader a list is answered %d %s", w.Code, w.Body)
	}
	wantAnswer(t, do(s, http.MethodGet, "/readyz"), 503, "node is not ready")
}

func TestServer_WriteDeadline(t *testing.T) {
	t.Parallel()
	s, f := newTestServer(t, func(o *Options) { o.WriteTimeout = 20 * time.Millisecond })
	f.propose = func(ctx context.Context, _ registry.Command) (registry.Result, error) {
		<-ctx.Done()
		return registry.Result{}, registry.ErrUncertain
	}
	wantAnswer(t, do(s, http.MethodPost, registerPath), 503, "caused: "+uncertainText+";")
}

func TestServer_Consistency(t *testing.T) {
	t.Parallel()
	s, f := newTestServer(t, func(o *Options) { o.ReadTimeout = 20 * time.Millisecond })
	if w := do(s, http.MethodGet, listPath+"&minIndex=7"); w.Code != 200 {
		t.Errorf("minIndex that is applied: %d %s", w.Code, w.Body)
	}
	wantAnswer(t, do(s, http.MethodGet, listPath+"&minIndex=8"), 504, "caused: index 8 is not applied here, this node is at 7;")
	req := httptest.NewRequest(http.MethodGet, listPath, nil)
	req.Header.Set("X-Rollcall-Min-Index", "8")
	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, req)
	if w.Code != 504 {
		t.Errorf("minIndex in the header: %d", w.Code)
	}
	f.readIndex = func(context.Context) (uint64, error) { return 9, nil }
	if w := do(s, http.MethodGet, listPath+"&consistency=linearizable"); w.Code != 504 {
		t.Errorf("a read index that is not applied: %d %s", w.Code, w.Body)
	}
	f.readIndex = func(context.Context) (uint64, error) { return 0, registry.ErrNoLeader }
	wantAnswer(t, do(s, http.MethodGet, listPath+"&consistency=linearizable"), 503, "caused: no leader;")
}

func TestServer_Panic(t *testing.T) {
	t.Parallel()
	s, f := newTestServer(t, nil)
	f.beat = func(context.Context, registry.Beat) (registry.BeatReply, error) { panic("boom") }
	wantAnswer(t, do(s, http.MethodPut, nsPrefix+"/instance/beat?serviceName=a&ip=10.0.0.1&port=1"), 500, "caused: "+internalText+";")
	if got := metric(t, s, "rollcall_http_panics_total"); got != 1 {
		t.Errorf("%v panics counted", got)
	}
	wantAnswer(t, do(s, http.MethodPost, registerPath), 200, "ok")
}

func TestServer_Metrics(t *testing.T) {
	t.Parallel()
	s, _ := newTestServer(t, nil)
	do(s, http.MethodPost, registerPath)
	do(s, http.MethodPost, registerPath)
	do(s, http.MethodPost, nsPrefix+"/instance")
	do(s, "BREW", nsPrefix+"/coffee")
	w := do(s, http.MethodGet, "/metrics")
	for _, line := range []string{
		`rollcall_http_requests_total{code="200",method="POST",route="/nacos/v1/ns/instance"} 2`,
		`rollcall_http_requests_total{code="400",method="POST",route="/nacos/v1/ns/instance"} 1`,
		`rollcall_http_requests_total{code="501",method="any",route="other"} 1`,
		`rollcall_http_request_seconds_count{method="POST",route="/nacos/v1/ns/instance"} 3`,
	} {
		if !strings.Contains(w.Body.String(), line+"\n") {
			t.Errorf("no line %s", line)
		}
	}
}

func TestServer_Limits(t *testing.T) {
	t.Parallel()
	s, f := newTestServer(t, func(o *Options) { o.MaxBody = 1 << 10 })
	base := "http://" + startServer(t, s)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	send := func(body io.Reader, query string) (int, string) {
		t.Helper()
		resp, err := client.Post(base+nsPrefix+"/instance"+query, "application/x-www-form-urlencoded", body)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(text)
	}
	large := "serviceName=svc&ip=10.0.0.1&port=80&metadata=" + strings.Repeat("x", 6<<10)
	const refusal = "caused: request body is larger than 1024 bytes;"
	if status, text := send(strings.NewReader(large), ""); status != 413 || text != refusal {
		t.Errorf("large body: %d %q", status, text)
	}
	if status, text := send(io.MultiReader(strings.NewReader(large)), ""); status != 413 || text != refusal { // chunked
		t.Errorf("large body of unknown length: %d %q", status, text)
	}
	if status, _ := send(nil, "?metadata="+strings.Repeat("x", 80<<10)); status != 431 {
		t.Errorf("large header: %d", status)
	}
	if len(f.proposed) != 0 {
		t.Errorf("proposed %v", f.proposed)
	}
	if status, text := send(strings.NewReader("serviceName=svc&ip=10.0.0.1&port=80"), ""); status != 200 {
		t.Errorf("small body: %d %q", status, text)
	}
}

// A request waits no longer than the server lives.
func TestServer_BaseContext(t *testing.T) {
	t.Parallel()
	s, f := newTestServer(t, func(o *Options) { o.WriteTimeout = time.Hour })
	waiting := make(chan struct{})
	var once sync.Once
	f.propose = func(ctx context.Context, _ registry.Command) (registry.Result, error) {
		once.Do(func() { close(waiting) })
		<-ctx.Done()
		return registry.Result{}, registry.ErrUncertain
	}
	ctx, cancel := context.WithCancel(context.Background())
	server := httptest.NewUnstartedServer(s.Handler())
	server.Config = s.HTTPServer(ctx)
	server.Start()
	defer server.Close()
	go func() { <-waiting; cancel() }()
	resp, err := server.Client().Post(server.URL+registerPath, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != 503 {
		t.Errorf("answered %d", resp.StatusCode)
	}
}

func TestNew_Options(t *testing.T) {
	t.Parallel()
	if _, err := New(Options{}); err == nil || !strings.Contains(err.Error(), "no Reader") || !strings.Contains(err.Error(), "IdleTimeout") {
		t.Errorf("New without anything: %v", err)
	}
}

func TestOnceLog(t *testing.T) {
	t.Parallel()
	var o onceLog
	now := time.Unix(1_000, 0)
	if !o.first("a", now) || o.first("a", now) || !o.first("b", now) {
		t.Error("first is not true exactly once")
	}
	logged := 0
	for i := range 100 {
		if o.first(fmt.Sprint(i), now) {
			logged++
		}
	}
	if logged != maxPerSecond-2 {
		t.Errorf("%d messages in one second, want %d", logged+2, maxPerSecond)
	}
	for i := range maxRemembered + 10 {
		now = now.Add(time.Second)
		o.first(fmt.Sprint("x", i), now)
	}
	if len(o.seen) > maxRemembered {
		t.Errorf("%d messages remembered", len(o.seen))
	}
}
