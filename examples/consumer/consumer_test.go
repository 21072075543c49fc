package main

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rollcall-io/rollcall/client/fake"
)

// output is written by several goroutines.
type output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(b)
}

func (o *output) has(text string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return strings.Contains(o.b.String(), text)
}

func TestConsumer_CallsByNameAndTellsChanges(t *testing.T) {
	registry, err := fake.Start()
	if err != nil {
		t.Fatal(err)
	}
	defer registry.Stop()
	backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprintf(w, "you are at %s\n", r.URL.Path) }))
	defer backend.Close()
	at := backend.Listener.Addr().(*net.TCPAddr)
	registry.Put(fake.Instance{Service: "hello", IP: at.IP.String(), Port: at.Port, Weight: 1, Enabled: true, Healthy: true})

	ctx, cancel := context.WithCancel(t.Context())
	out, ended := &output{}, make(chan error, 1)
	go func() { ended <- run(ctx, out, []string{registry.URL()}, "hello", 10*time.Millisecond) }()
	deadline := time.Now().Add(20 * time.Second)
	for !out.has("1 added, 0 removed, 0 modified: 1 healthy") || !out.has("you are at /greeting") {
		if time.Now().After(deadline) {
			t.Fatal(out.b.String())
		}
		time.Sleep(5 * time.Millisecond)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
}
