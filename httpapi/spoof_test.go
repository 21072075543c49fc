package httpapi

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"golang.org/x/crypto/bcrypt"

	"github.com/rollcall-io/rollcall/auth"
)

// forwardedHeaders say that a request came from somewhere else, as proxies do and anybody can.
var forwardedHeaders = []http.Header{
	{"X-Forwarded-For": {"10.9.9.9"}}, {"X-Forwarded-For": {"10.9.9.9, 127.0.0.1", "10.9.9.8"}}, {"X-Real-Ip": {"10.9.9.9"}},
	{"Forwarded": {"for=10.9.9.9;proto=http"}}, {"X-Appengine-Remote-Addr": {"10.9.9.9"}}, {"Cf-Connecting-Ip": {"10.9.9.9"}},
}

// TestSpoofedClientAddress_IsNotBelieved: a framework believed X-Forwarded-For, so that
// whom pushes went to, what the log said and whom limits met could be made up
// (gin-gonic/gin #2473, #1245, #1684; alibaba/nacos #5406, #10233).
func TestSpoofedClientAddress_IsNotBelieved(t *testing.T) {
	t.Parallel()
	for _, h := range forwardedHeaders {
		p := &fakePusher{}
		var log strings.Builder
		s, _ := newTestServer(t, func(o *Options) {
			o.Pusher, o.AccessLogEvery = p, 1
			o.Logger = hclog.New(&hclog.LoggerOptions{Level: hclog.Debug, Output: &log})
		})
		req := httptest.NewRequest(http.MethodGet, listPath+"&udpPort=7000", nil)
		req.RemoteAddr, req.Header = "10.1.1.1:5555", h.Clone()
		req.Header.Set("User-Agent", "Nacos-Java-Client:v1.4.7")
		s.Handler().ServeHTTP(httptest.NewRecorder(), req)
		if len(p.subs) != 1 || p.subs[0].Addr != netip.MustParseAddrPort("10.1.1.1:7000") {
			t.Errorf("%v: pushes go to %+v", h, p.subs)
		}
		if text := log.String(); strings.Contains(text, "10.9.9") || !strings.Contains(text, "10.1.1.1:5555") {
			t.Errorf("%v: the log says %s", h, text)
		}
	}
}

// The wait after wrong passwords is for the peer, whatever it calls itself.
func TestSpoofedClientAddress_EscapesNoLimit(t *testing.T) {
	t.Parallel()
	now := time.Now() // and it stays now
	s, _ := newGuardedServer(t, func(o *Options) {
		o.Auth = auth.New(auth.Options{Accounts: o.Reader.Accounts, Cost: bcrypt.MinCost, Now: func() time.Time { return now }})
	})
	login := func(password string, h http.Header) *httptest.ResponseRecorder {
		req := httptest.NewRequest(http.MethodPost, authPrefix+"/login?username=alice&password="+password, nil)
		req.RemoteAddr, req.Header = "192.0.2.7:1", h
		w := httptest.NewRecorder()
		s.Handler().ServeHTTP(w, req)
		return w
	}
	for i := range 20 {
		if w := login("guess", forwardedHeaders[i%len(forwardedHeaders)]); w.Code != http.StatusForbidden {
			t.Fatalf("wrong password: %d %s", w.Code, w.Body)
		}
	}
	for _, h := range forwardedHeaders {
		if w := login("secret", h); w.Code != http.StatusForbidden || !strings.Contains(w.Body.String(), "too many failed logins") {
			t.Errorf("%v escapes the wait: %d %s", h, w.Code, w.Body)
		}
	}
}

// TestScriptInErrorText_IsNeverMarkup: an error page repeated a parameter as HTML
// (alibaba/nacos #1717, #7359, #3125).
func TestScriptInErrorText_IsNeverMarkup(t *testing.T) {
	t.Parallel()
	s, _ := newTestServer(t, nil)
	const script = "%3Cscript%3Ealert(1)%3C/script%3E"
	for _, target := range []string{
		nsPrefix + "/instance/list?serviceName=" + script, nsPrefix + "/instance/list?serviceName=a&namespaceId=" + script,
		nsPrefix + "/instance/list?serviceName=a&clusters=" + script, nsPrefix + "/instance?serviceName=a&ip=" + script + "&port=1",
		nsPrefix + "/instance/list?serviceName=a&minIndex=" + script, nsPrefix + "/service?serviceName=" + script, nsPrefix + "/" + script,
		"/nacos/" + script, "/" + script, v2NsPrefix + "/instance?serviceName=" + script, v2NsPrefix + "/" + script,
		consolePrefix + "/namespaces?show=all&namespaceId=" + script, "/api/v1/watch?service=" + script + "&index=" + script,
		nsPrefix + "/service/list?pageNo=" + script + "&pageSize=1", nsPrefix + "/instance/list?serviceName=a&env=" + script + "&udpPort=" + script,
	} {
		for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodDelete, "BREW"} {
			for _, accept := range []string{"", "text/html,application/xhtml+xml;q=0.9,*/*;q=0.8", "text/html", "application/json"} {
				req := httptest.NewRequest(method, target, nil)
				req.Header.Set("Accept", accept)
				w := httptest.NewRecorder()
				s.Handler().ServeHTTP(w, req)
				kind := w.Header().Get("Content-Type")
				if w.Header().Get("X-Content-Type-Options") != "nosniff" || kind == "" {
					t.Errorf("%s %s, accepting %q: type %q, headers %v", method, target, accept, kind, w.Header())
				}
				if strings.HasPrefix(kind, "text/html") && strings.Contains(w.Body.String(), "<script") {
					t.Errorf("%s %s, accepting %q: %s", method, target, accept, w.Body)
				}
			}
		}
	}
}
