package client_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rollcall-io/rollcall/client"
)

// recorder notes the requests that a client sends.
type recorder struct {
	http.RoundTripper
	mu   sync.Mutex
	seen []sent
}

type sent struct {
	at          time.Time
	kind, agent string
	form        url.Values
}

func record(t *testing.T) *recorder {
	pool := &http.Transport{}
	t.Cleanup(pool.CloseIdleConnections)
	return &recorder{RoundTripper: pool}
}

func (r *recorder) RoundTrip(req *http.Request) (*http.Response, error) {
	s := sent{at: time.Now(), kind: req.Method + " " + req.URL.Path, agent: req.UserAgent(), form: url.Values{}}
	if req.Body != nil {
		b, err := io.ReadAll(req.Body)
		if err != nil {
			return nil, err
		}
		req.Body = io.NopCloser(bytes.NewReader(b))
		if s.form, err = url.ParseQuery(string(b)); err != nil {
			return nil, err
		}
	}
	r.mu.Lock()
	r.seen = append(r.seen, s)
	r.mu.Unlock()
	return r.RoundTripper.RoundTrip(req)
}

func (r *recorder) of(kind string) (all []sent) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.seen {
		if s.kind == kind {
			all = append(all, s)
		}
	}
	return all
}

// The first beat goes out within one interval of the registration and says everything, the
// next ones nothing; after an error everything is said again.
func TestBeat_FullFirstAndAfterAnErrorLightOtherwise(t *testing.T) {
	s, r := startFake(t), record(t)
	s.BeatInterval(100 * time.Millisecond)
	c := newClient(t, func(o *client.Options) { o.Transport = r }, s.URL())
	reg := quick("orders", "10.0.0.1", 80)
	reg.Metadata[client.MetaBeatInterval], reg.Metadata[client.MetaBeatTimeout], reg.Metadata[client.MetaDeleteTimeout] = "1000", "15000", "30000"
	must(t, c.Register(t.Context(), reg))
	registered := time.Now()
	beats := func() []sent { return r.of(beatRequest) }
	until(t, "three beats", func() bool { return len(beats()) >= 3 })
	for n, b := range beats()[:3] {
		if full := b.form.Has("beat"); full != (n == 0) {
			t.Errorf("beat %d is full: %v", n+1, full)
		}
	}
	if late := beats()[0].at.Sub(registered); late > 3*time.Second { // an interval, and a busy machine
		t.Errorf("the first beat came after %s", late)
	}
	s.Fail(http.StatusServiceUnavailable)
	n := len(beats())
	until(t, "a beat that failed", func() bool { return c.Registrations()[0].Failures > 0 && len(beats()) > n })
	s.Fail(0)
	until(t, "a beat that did not", func() bool { return c.Registrations()[0].Failures == 0 })
	until(t, "light beats again", func() bool { all := beats(); return !all[len(all)-1].form.Has("beat") })
	full := 0
	for _, b := range beats()[n:] {
		if b.form.Has("beat") {
			full++
		}
	}
	if full == 0 {
		t.Error("after an error no beat said everything")
	}
}

// Silent for longer than the delete timeout, the instance is gone: a beat would bring it
// back without what was registered, so it is registered instead.
func TestBeat_AfterALongSilenceItRegistersAgain(t *testing.T) {
	s, r := startFake(t), record(t)
	s.BeatInterval(50 * time.Millisecond)
	c := newClient(t, func(o *client.Options) { o.Transport = r }, s.URL())
	must(t, c.Register(t.Context(), quick("orders", "10.0.0.1", 80)))
	until(t, "beats", func() bool { return s.Beats() > 1 })
	s.Fail(http.StatusServiceUnavailable)
	until(t, "doubt that it is still there", func() bool { return !c.Registrations()[0].Registered })
	s.Expire(0)
	s.Fail(0)
	until(t, "the instance back", func() bool { return len(s.Instances("orders")) == 1 })
	if got := s.Instances("orders")[0]; got.Metadata[client.MetaDeleteTimeout] != "2000" {
		t.Errorf("it came back as %+v", got)
	}
}

func TestRegister_PersistentInstancesDoNotBeat(t *testing.T) {
	s := startFake(t)
	c := newClient(t, nil, s.URL())
	r := quick("db", "10.0.0.1", 80)
	r.Persistent = true
	must(t, c.Register(t.Context(), r))
	throughout(t, 500*time.Millisecond, "silent", func() bool { return s.Beats() == 0 })
	must(t, c.Close(t.Context()))
	if n := len(s.Instances("db")); n != 1 {
		t.Errorf("%d instances after Close", n)
	}
}

func TestServers_ARedirectIsNotFollowed(t *testing.T) {
	elsewhere := startFake(t)
	ctx, enough := context.WithCancel(t.Context())
	defer enough()
	var asked atomic.Int32
	away := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if asked.Add(1) > 1 { // the first answer was read by then
			enough()
		}
		http.Redirect(w, r, elsewhere.URL()+r.URL.RequestURI(), http.StatusTemporaryRedirect)
	}))
	t.Cleanup(away.Close)
	c := newClient(t, nil, away.URL)
	var e *client.ServerError
	if err := c.Register(ctx, quick("orders", "10.0.0.1", 80)); !errors.Is(err, client.ErrPending) || !errors.As(err, &e) || e.Status != 307 {
		t.Error(err)
	}
	if n := len(elsewhere.Instances("orders")); n != 0 {
		t.Error("the registration went where the server pointed")
	}
}

func TestOptions_ContextPathUserAgentAndTLS(t *testing.T) {
	s := startFake(t)
	to, err := url.Parse(s.URL())
	must(t, err)
	pass := httputil.NewSingleHostReverseProxy(to)
	pool := &http.Transport{}
	t.Cleanup(pool.CloseIdleConnections)
	pass.Transport = pool
	var agent string
	secure := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path, found := strings.CutPrefix(r.URL.Path, "/registry")
		if agent = r.UserAgent(); !found {
			http.NotFound(w, r)
			return
		}
		r.URL.Path = "/nacos" + path
		pass.ServeHTTP(w, r)
	}))
	secure.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, 0) // of the handshake that fails below
	secure.StartTLS()
	t.Cleanup(secure.Close)
	trusted := x509.NewCertPool()
	trusted.AddCert(secure.Certificate())
	c := newClient(t, func(o *client.Options) {
		o.ContextPath, o.UserAgent, o.TLS = "/registry/", "shop/1", &tls.Config{RootCAs: trusted, MinVersion: tls.VersionTLS12}
	}, secure.URL)
	must(t, c.Register(t.Context(), client.Registration{Service: "orders", IP: "10.0.0.1", Port: 80, Persistent: true})) // no beat after it
	if want := "shop/1 rollcall-go/" + client.Version; agent != want || len(s.Instances("orders")) != 1 {
		t.Errorf("User-Agent %q, %d instances", agent, len(s.Instances("orders")))
	}
	stranger := newClient(t, func(o *client.Options) { o.ContextPath, o.Timeout = "registry", time.Second }, secure.URL)
	if _, err := stranger.ServerStatus(t.Context()); !errors.Is(err, client.ErrUnavailable) {
		t.Errorf("a certificate that nobody vouches for: %v", err)
	}
}

// Many who ask for a service at once share one request.
func TestFollow_ManyAtOnceAskOnce(t *testing.T) {
	s := startFake(t)
	s.Put(up(80, 1))
	c := newClient(t, func(o *client.Options) { o.MaxStreams, o.NoPush, o.PollInterval = -1, true, time.Hour }, s.URL())
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			service, err := c.Follow(t.Context(), orders)
			if err != nil {
				t.Error(err)
				return
			}
			if _, err := service.Pick(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n := s.Requests(listRequest); n != 1 {
		t.Errorf("%d requests", n)
	}
}
