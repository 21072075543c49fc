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

func post(c *http.Client, url, body string) (string, error) {
	resp, err := c.Post(url, "text/plain", strings.NewReader(body))
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
		got, err := post(c, "rollcall://orders/items/1", "body")
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
		if got, err := post(c, "rollcall://orders/x", "body"); err != nil || got != "up orders /x body" {
			t.Fatalf("%q, %v", got, err)
		}
	}
}

func TestRoundTrip_NobodyAndOtherSchemes(t *testing.T) {
	s, c := world(t, httprr.Options{})
	if _, err := post(c, "rollcall://nobody/x", ""); !errors.Is(err, client.ErrNoInstance) {
		t.Error(err)
	}
	b := backend(t, s, "orders", "direct")
	if got, err := post(c, b.URL+"/y", "z"); err != nil || !strings.HasPrefix(got, "direct 127.0.0.1:") {
		t.Errorf("%q, %v", got, err)
	}
}
