package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/rollcall-io/rollcall/client"
	"github.com/rollcall-io/rollcall/client/fake"
	"github.com/rollcall-io/rollcall/client/httprr"
)

// backend is an instance of orders that says its name.
func backend(t *testing.T, registry *fake.Server, name string) {
	t.Helper()
	b := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%s %s?%s %s", name, r.URL.Path, r.URL.RawQuery, r.Header.Get("X-Forwarded-For"))
	}))
	t.Cleanup(b.Close)
	at := b.Listener.Addr().(*net.TCPAddr)
	registry.Put(fake.Instance{Service: "orders", IP: at.IP.String(), Port: at.Port, Weight: 1, Enabled: true, Healthy: true})
}

func TestProxy_ByName(t *testing.T) {
	registry, err := fake.Start()
	if err != nil {
		t.Fatal(err)
	}
	defer registry.Stop()
	for _, name := range []string{"one", "two", "three"} {
		backend(t, registry, name)
	}
	c, err := client.New(client.Options{Servers: []string{registry.URL()}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(context.Background())
	byName := httprr.New(c, httprr.Options{Choose: sameForCaller})
	defer byName.Close()
	h := handler(byName)

	seen := map[string]bool{}
	for range 20 {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/orders/items/1?x=y", nil))
		body, _ := io.ReadAll(w.Body) // of a recorder: it cannot fail
		seen[string(body)] = true
		if w.Code != http.StatusOK {
			t.Fatalf("%d %s", w.Code, body)
		}
	}
	if len(seen) != 1 {
		t.Errorf("one caller got answers of several instances: %v", seen)
	}
	for path, want := range map[string]int{"/nobody/x": http.StatusServiceUnavailable, "/": http.StatusNotFound} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		if w.Code != want {
			t.Errorf("%s: %d instead of %d", path, w.Code, want)
		}
	}
}
