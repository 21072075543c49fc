package probe

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/rollcall-io/rollcall/registry"
)

// patience is the timeout of probes that are to end before it, on the busiest machine.
const patience = 30 * time.Second

// check runs a checker as the prober does.
func check(t *testing.T, c Checker, address string, timeout time.Duration, s registry.Checker) Outcome {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	return c.Check(ctx, address, s)
}

func TestHTTP_Outcomes(t *testing.T) {
	mux := http.NewServeMux()
	mux.HandleFunc("/up", func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet || r.URL.RawQuery != "deep=1" {
			w.WriteHeader(http.StatusTeapot)
		}
	})
	mux.HandleFunc("/guarded", func(w http.ResponseWriter, r *http.Request) {
		if r.Host != "inner" || r.Header.Get("X-Token") != "a:b" {
			w.WriteHeader(http.StatusForbidden)
		}
	})
	mux.HandleFunc("/moved", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/up", http.StatusFound) })
	mux.HandleFunc("/busy", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) })
	mux.HandleFunc("/accepted", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusAccepted) })
	mux.HandleFunc("/slow", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	mux.HandleFunc("/long", func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X", strings.Repeat("x", 1<<20)) })
	server := httptest.NewServer(mux)
	address := server.Listener.Addr().String()
	for _, c := range []struct {
		name string
		s    registry.Checker
		want Outcome
	}{
		{"200", registry.Checker{Path: "/up?deep=1"}, Up},
		{"path without a slash", registry.Checker{Path: "up?deep=1", ExpectedCode: 200}, Up},
		{"headers", registry.Checker{Path: "/guarded", Headers: "X-Token:a:b|Host:inner"}, Up},
		{"headers missing", registry.Checker{Path: "/guarded"}, Refused},
		{"expected code", registry.Checker{Path: "/accepted", ExpectedCode: 202}, Up},
		{"other than the expected code", registry.Checker{Path: "/accepted", ExpectedCode: 200}, Refused},
		{"not found", registry.Checker{Path: "/nothing"}, Refused},
		{"no path", registry.Checker{}, Refused},
		{"redirect", registry.Checker{Path: "/moved"}, Down},
		{"redirect expected", registry.Checker{Path: "/moved", ExpectedCode: 302}, Up},
		{"busy", registry.Checker{Path: "/busy"}, Down},
		{"slow", registry.Checker{Path: "/slow"}, Down},
		{"endless header", registry.Checker{Path: "/long"}, Down},
		{"no path at all", registry.Checker{Path: "/%zz"}, Down},
		{"no header at all", registry.Checker{Path: "/up?deep=1", Headers: "a b:c"}, Down},
	} {
		t.Run(c.name, func(t *testing.T) {
			timeout := patience
			if c.s.Path == "/slow" {
				timeout = 500 * time.Millisecond
			}
			if got := check(t, NewHTTP(), address, timeout, c.s); got != c.want {
				t.Errorf("outcome %d, want %d", got, c.want)
			}
		})
	}
	server.Close()
	if got := check(t, NewHTTP(), address, patience, registry.Checker{Path: "/up"}); got != Refused {
		t.Errorf("closed: outcome %d, want refused", got)
	}
}
