package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// registry is as much of a node as a run needs.
type registry struct {
	mu    sync.Mutex
	index int
	known map[string]map[string]bool // service -> ip
	sick  string                     // an ip that is shown unhealthy
	fail  bool                       // refuse beats
}

func (s *registry) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := r.URL.Query()
	service, ip := q.Get("serviceName"), q.Get("ip")
	switch {
	case r.Method == http.MethodPost:
		if s.known[service] == nil {
			s.known[service] = map[string]bool{}
		}
		s.known[service][ip] = true
		s.index++
		io.WriteString(w, "ok")
	case r.Method == http.MethodDelete:
		delete(s.known[service], ip)
		s.index++
		io.WriteString(w, "ok")
	case strings.HasSuffix(r.URL.Path, "/beat") && s.fail:
		w.WriteHeader(http.StatusServiceUnavailable)
	case strings.HasSuffix(r.URL.Path, "/beat"):
		io.WriteString(w, `{"code":10200}`)
	default:
		w.Header().Set("X-Rollcall-Index", fmt.Sprint(s.index))
		var hosts []string
		for ip := range s.known[service] {
			hosts = append(hosts, fmt.Sprintf(`{"healthy":%v}`, ip != s.sick))
		}
		fmt.Fprintf(w, `{"hosts":[%s]}`, strings.Join(hosts, ","))
	}
}

func (s *registry) left() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, ips := range s.known {
		n += len(ips)
	}
	return n
}

func start(t *testing.T, s *registry, op string) (Report, error) {
	t.Helper()
	s.known = map[string]map[string]bool{}
	node := httptest.NewServer(s)
	t.Cleanup(node.Close)
	duration := time.Second
	if op == "register" { // it ends when all are registered
		duration = time.Minute
	}
	return Run(context.Background(), Options{
		Addrs: []string{strings.TrimPrefix(node.URL, "http://")}, Op: op, Conns: 4,
		Duration: duration, Instances: 25, Interval: 200 * time.Millisecond, Prefix: "t",
	}, io.Discard)
}

func TestRun_EveryLoadCountsAndCleansUp(t *testing.T) {
	for _, op := range Ops {
		t.Run(op, func(t *testing.T) {
			var s registry
			r, err := start(t, &s, op)
			if err != nil {
				t.Fatal(err)
			}
			if r.Failed != 0 || r.Done == 0 || r.Unhealthy != 0 {
				t.Errorf("%+v", r)
			}
			if grows := op == "register" || op == "reregister"; grows != (r.IndexGrowth > 0) {
				t.Errorf("the index moved by %d", r.IndexGrowth)
			}
			if op == "register" && r.Done != 25 {
				t.Errorf("%d registrations of 25", r.Done)
			}
			if n := s.left(); n != 0 {
				t.Errorf("%d instances left behind", n)
			}
		})
	}
}

func TestRun_SaysWhatWentWrong(t *testing.T) {
	s := registry{fail: true, sick: "10.0.0.3"}
	r, err := start(t, &s, "live")
	if err != nil {
		t.Fatal(err)
	}
	if r.Done != 0 || r.Failed == 0 || !strings.Contains(r.FirstFailure, "503") || r.Unhealthy != 1 {
		t.Errorf("%+v", r)
	}
}

func TestOptions_ValidateNamesEveryFault(t *testing.T) {
	err := Options{Op: "smash", Conns: 0, Instances: -1}.Validate()
	for _, want := range []string{"--addr", `"smash"`, "--conns 0", "--duration 0s", "--instances -1", "--interval 0s"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not name %s", err, want)
		}
	}
}

func TestRun_CutOffCleansUp(t *testing.T) {
	s := registry{known: map[string]map[string]bool{}}
	node := httptest.NewServer(&s)
	t.Cleanup(node.Close)
	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(100*time.Millisecond, func() { cancel(errors.New("enough")) })
	_, err := Run(ctx, Options{
		Addrs: []string{strings.TrimPrefix(node.URL, "http://")}, Op: "list", Conns: 4,
		Duration: time.Minute, Instances: 25, Interval: time.Second, Prefix: "t",
	}, io.Discard)
	if err == nil || !strings.Contains(err.Error(), "enough") {
		t.Errorf("error %v does not say why it ended", err)
	}
	if n := s.left(); n != 0 {
		t.Errorf("%d instances left behind", n)
	}
}

func TestRun_LogsInAtNodesWithAccounts(t *testing.T) {
	s := registry{known: map[string]map[string]bool{}}
	node := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasSuffix(r.URL.Path, "/auth/login") && r.PostFormValue("username") == "u" && r.PostFormValue("password") == "p&w":
			io.WriteString(w, `{"accessToken":"good"}`)
		case r.Header.Get("Authorization") != "Bearer good":
			w.WriteHeader(http.StatusForbidden)
		default:
			s.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(node.Close)
	o := Options{
		Addrs: []string{strings.TrimPrefix(node.URL, "http://")}, Op: "register", Conns: 2,
		Duration: time.Minute, Instances: 5, Interval: time.Second, Prefix: "t",
	}
	if _, err := Run(t.Context(), o, io.Discard); err == nil || !strings.Contains(err.Error(), "--user") {
		t.Errorf("without an account: %v", err)
	}
	o.User, o.Password = "u", "wrong"
	if _, err := Run(t.Context(), o, io.Discard); err == nil || !strings.Contains(err.Error(), "as u: answered 403") {
		t.Errorf("with a wrong password: %v", err)
	}
	o.Password = "p&w"
	if r, err := Run(t.Context(), o, io.Discard); err != nil || r.Done != 5 {
		t.Errorf("with the right one: %+v, %v", r, err)
	}
}
