package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"sync"
	"syscall"
	"time"
)

// faults does to the cluster what the checks ask for, one thing at a time: a check that
// needs the cluster for itself takes it with /hold and gives it back with /release, and
// the killer waits for that.
type faults struct {
	c    *cluster
	held chan struct{} // holds one token while somebody owns the cluster

	mu    sync.Mutex
	kills int
}

func newFaults(c *cluster) *faults { return &faults{c: c, held: make(chan struct{}, 1)} }

// serve answers the checks on an address of loopback until the context ends.
func (f *faults) serve(ctx context.Context, wg *sync.WaitGroup) (string, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	mux := http.NewServeMux()
	on := func(path string, do func(r *http.Request) (string, error)) {
		mux.HandleFunc("POST "+path, func(w http.ResponseWriter, r *http.Request) {
			said, err := do(r)
			if err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
				return
			}
			fmt.Fprint(w, said)
		})
	}
	on("/hold", f.hold)
	on("/release", func(*http.Request) (string, error) { <-f.held; return "ok", nil })
	on("/leader", func(*http.Request) (string, error) {
		n, err := f.c.leader()
		if err != nil {
			return "", err
		}
		return n.id, nil
	})
	on("/kill", f.stopNode(syscall.SIGKILL))
	on("/stop", f.stopNode(syscall.SIGTERM))
	on("/start", f.startNode)
	srv := &http.Server{Handler: mux, ReadHeaderTimeout: time.Second}
	wg.Add(2)
	go func() { defer wg.Done(); _ = srv.Serve(ln) }()
	go func() { defer wg.Done(); <-ctx.Done(); _ = srv.Close() }()
	return "http://" + ln.Addr().String(), nil
}

func (f *faults) hold(r *http.Request) (string, error) {
	select {
	case f.held <- struct{}{}:
		return "ok", nil
	case <-r.Context().Done():
		return "", r.Context().Err()
	}
}

func (f *faults) stopNode(sig syscall.Signal) func(*http.Request) (string, error) {
	return func(r *http.Request) (string, error) {
		n, err := f.c.find(r.FormValue("node"))
		if err != nil {
			return "", err
		}
		return n.id, f.c.stop(n, sig)
	}
}

// startNode starts a node and, unless wait=no, waits until it is ready.
func (f *faults) startNode(r *http.Request) (string, error) {
	n, err := f.c.find(r.FormValue("node"))
	if err != nil {
		return "", err
	}
	if err := f.c.start(n); err != nil || r.FormValue("wait") == "no" {
		return n.id, err
	}
	return n.id, f.c.ready(n)
}

// killLeaders kills the leader now and at every interval and starts it again, until the
// context ends. The first error ends it too.
func (f *faults) killLeaders(ctx context.Context, every time.Duration) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case f.held <- struct{}{}:
		}
		err := f.killLeader()
		<-f.held
		if err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

func (f *faults) killLeader() error {
	n, err := f.c.leader()
	if err != nil {
		return err
	}
	if err := f.c.stop(n, syscall.SIGKILL); err != nil {
		return err
	}
	// The others must agree on a new one before the old one is back.
	if _, err := f.c.leader(); err != nil {
		return err
	}
	if err := f.c.start(n); err != nil {
		return err
	}
	f.mu.Lock()
	f.kills++
	f.mu.Unlock()
	return f.c.ready(n)
}
