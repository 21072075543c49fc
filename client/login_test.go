package client_test

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/rollcall-io/rollcall/client"
)

// tokens is a server whose tokens are good until the next one, and said to be for ttl
// seconds.
type tokens struct {
	http.RoundTripper
	mu     sync.Mutex
	ttl    int
	issued int
	bad    int // requests with another token
}

func (k *tokens) RoundTrip(r *http.Request) (*http.Response, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	answer := func(status int, body string) (*http.Response, error) {
		return &http.Response{StatusCode: status, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
	}
	if strings.HasSuffix(r.URL.Path, "/login") {
		k.issued++
		return answer(http.StatusOK, fmt.Sprintf(`{"accessToken":"secret-token-%d","tokenTtl":%d}`, k.issued, k.ttl))
	}
	if r.Header.Get("Authorization") != fmt.Sprintf("Bearer secret-token-%d", k.issued) {
		k.bad++
		return answer(http.StatusForbidden, "token expired!")
	}
	return answer(http.StatusOK, `{"status":"UP"}`)
}

func TestLogin_RenewedBeforeItsEndAndWhenRefused(t *testing.T) {
	k := &tokens{ttl: 3600} // none ends while the test counts
	c := newClient(t, func(o *client.Options) { o.Username, o.Password, o.Transport = "u", "p", k }, "127.0.0.1:1")
	ask := func() {
		t.Helper()
		if status, err := c.ServerStatus(t.Context()); err != nil || status != "UP" {
			t.Fatal(status, err)
		}
	}
	ask()
	k.mu.Lock()
	k.issued++ // as if the server had forgotten the token
	k.mu.Unlock()
	ask()
	k.mu.Lock()
	if k.issued != 3 || k.bad != 1 {
		t.Errorf("%d logins and %d refusals, want 3 and 1", k.issued, k.bad)
	}
	k.ttl = 1
	k.issued++
	k.mu.Unlock()
	ask() // a token for a second
	until(t, "two more logins before the end of a token", func() bool { ask(); k.mu.Lock(); defer k.mu.Unlock(); return k.issued == 7 })
	if k.bad != 2 {
		t.Errorf("%d refusals while tokens were renewed", k.bad-2)
	}
}

// lines is what a logger wrote.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

func TestLogin_NoSecretInLogsOrErrors(t *testing.T) {
	s, log := startFake(t), &lines{}
	s.Login("fleet", "good-password")
	c := newClient(t, func(o *client.Options) {
		o.Username, o.Password = "fleet", "good-password"
		o.Logger = slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}, s.URL())
	must(t, c.Register(t.Context(), quick("orders", "10.0.0.1", 80)))
	s.Login("fleet", "another")
	refused := c.Register(t.Context(), quick("orders", "10.0.0.1", 81))
	s.Pause()
	gone := c.Register(shortly(t), quick("orders", "10.0.0.1", 82))
	_, list := c.Follow(shortly(t), orders)
	until(t, "something in the log", func() bool { log.mu.Lock(); defer log.mu.Unlock(); return log.b.Len() > 0 })
	log.mu.Lock()
	defer log.mu.Unlock()
	for _, text := range []string{log.b.String(), fmt.Sprint(refused, gone, list)} {
		if strings.Contains(text, "good-password") || strings.Contains(text, "token-of") {
			t.Errorf("a secret in %s", text)
		}
	}
}
