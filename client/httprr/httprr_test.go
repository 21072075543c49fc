package httprr_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/rollcall-io/rollcall/client"
	"github.com/rollcall-io/rollcall/client/fake"
	"github.com/rollcall-io/rollcall/client/httprr"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a fake registry with a client, and an HTTP client that calls by name.
func world(t *testing.T, o httprr.Options) (*fake.Server, *http.Client) {
	t.Helper()
	s, err := fake.Start()
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.New(client.Options{Servers: []string{s.URL()}})
	if err != nil {
		t.Fatal(err)
	}
	base := &http.Transport{}
	o.Base = base
	rr := httprr.New(c, o)
	t.Cleanup(func() {
		rr.Close()
		base.CloseIdleConnections()
		if err := errors.Join(c.Close(context.Background()), s.Stop()); err != nil {
			t.Error(err)
		}
	})
	return s, &http.Client{Transport: rr, Timeout: 10 * time.Second}
}

// backend says its name, the Host header and the body.
func backend(t *testing.T, s *fake.Server, service, name string) *httptest.Server {
	t.Helper()
	b := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body) // a torn body shows in the answer
		fmt.Fprintf(w, "%s %s %s %s", name, r.Host, r.URL.Path, body)
	}))
	t.Cleanup(b.Close)
	host, port, err := net.SplitHostPort(b.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(port)
	if err != nil {
		t.Fatal(err)
	}
	s.Put(fake.Instance{Service: service, IP: host, Port: n, Weight: 1, Enabled: true, Healthy: true})
	return b
}

func post(c *http.Client, url string, body io.Reader) (string, error) {
	resp, err := c.Post(url, "text/plain", body)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return string(b), err
}

func TestRoundTrip_SpreadsAndKeepsTheName(t *testing.T) {
	s, c := world(t, httprr.Options{})
	backend(t, s, "orders", "one")
	backend(t, s, "orders", "two")
	seen := map[string]int{}
	for range 100 {
		got, err := post(c, "rollcall://orders/items/1", strings.NewReader("body"))
		if err != nil {
			t.Fatal(err)
		}
		seen[got]++
	}
	if len(seen) != 2 || seen["one orders /items/1 body"] < 20 || seen["two orders /items/1 body"] < 20 {
		t.Errorf("%v", seen)
	}
}

func TestRoundTrip_AnInstanceThatIsDownIsPassedOver(t *testing.T) {
	s, c := world(t, httprr.Options{Attempts: 20, Choose: func(s *client.Snapshot, _ *http.Request) *client.Instance { return s.Next() }})
	backend(t, s, "orders", "up")
	backend(t, s, "orders", "down").Close() // still in the list
	for range 10 {
		if got, err := post(c, "rollcall://orders/x", strings.NewReader("body")); err != nil || got != "up orders /x body" {
			t.Fatalf("%q, %v", got, err)
		}
	}
}

// streamed is a body that cannot be had anew, and that nobody reads after it was closed.
type streamed struct {
	io.Reader
	closed atomic.Int32
}

func (s *streamed) Read(b []byte) (int, error) {
	if s.closed.Load() > 0 {
		return 0, errors.New("read after Close")
	}
	return s.Reader.Read(b)
}

func (s *streamed) Close() error { s.closed.Add(1); return nil }

// A body without GetBody, as a proxy passes on, used to be closed by the first attempt.
func TestRoundTrip_AStreamedBodyOutlivesAnInstanceThatIsDown(t *testing.T) {
	s, c := world(t, httprr.Options{Choose: func(s *client.Snapshot, _ *http.Request) *client.Instance { return s.Next() }})
	backend(t, s, "orders", "up")
	backend(t, s, "orders", "down").Close()
	for range 10 {
		body := &streamed{Reader: strings.NewReader("body")}
		if got, err := post(c, "rollcall://orders/x", body); err != nil || got != "up orders /x body" {
			t.Fatalf("%q, %v", got, err)
		}
		for deadline := time.Now().Add(10 * time.Second); body.closed.Load() != 1; time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("closed %d times", body.closed.Load())
			}
		}
	}
	body := &streamed{Reader: strings.NewReader("body")}
	if _, err := post(c, "rollcall://nobody/x", body); !errors.Is(err, client.ErrNoInstance) || body.closed.Load() != 1 {
		t.Errorf("%v, closed %d times", err, body.closed.Load())
	}
}

// The choice by weight used to fall on the same dead instance again, until all attempts
// were gone.
func TestRoundTrip_EveryAttemptGoesToAnotherInstance(t *testing.T) {
	s, c := world(t, httprr.Options{Attempts: 4})
	backend(t, s, "orders", "up")
	for range 3 {
		backend(t, s, "orders", "down").Close()
	}
	for range 30 {
		if got, err := post(c, "rollcall://orders/x", nil); err != nil || got != "up orders /x " {
			t.Fatalf("%q, %v", got, err)
		}
	}
}

// Hosts out of strangers' requests used to be followed for ever.
func TestRoundTrip_OnlySoManyServicesAreFollowed(t *testing.T) {
	s, err := fake.Start()
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.New(client.Options{Servers: []string{s.URL()}})
	if err != nil {
		t.Fatal(err)
	}
	rr := httprr.New(c, httprr.Options{MaxServices: 2})
	defer func() {
		rr.Close()
		if err := errors.Join(c.Close(context.Background()), s.Stop()); err != nil {
			t.Error(err)
		}
	}()
	for _, service := range []string{"a", "b", "a", "c"} {
		req := httptest.NewRequest(http.MethodGet, "rollcall://"+service+"/", nil)
		if _, err := rr.RoundTrip(req); !errors.Is(err, client.ErrNoInstance) {
			t.Fatal(err)
		}
	}
	if got := fmt.Sprint(c.Followed()); got != "[DEFAULT_GROUP@@a DEFAULT_GROUP@@c]" {
		t.Errorf("followed: %s", got)
	}
	rr.Close()
	if _, err := rr.RoundTrip(httptest.NewRequest(http.MethodGet, "rollcall://a/", nil)); !errors.Is(err, client.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}

func TestRoundTrip_NobodyAndOtherSchemes(t *testing.T) {
	s, c := world(t, httprr.Options{})
	if _, err := post(c, "rollcall://nobody/x", nil); !errors.Is(err, client.ErrNoInstance) {
		t.Error(err)
	}
	b := backend(t, s, "orders", "direct")
	if got, err := post(c, b.URL+"/y", strings.NewReader("z")); err != nil || !strings.HasPrefix(got, "direct 127.0.0.1:") {
		t.Errorf("%q, %v", got, err)
	}
}
