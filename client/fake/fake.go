// Package fake is a registry in memory for tests of services that use package client. It
// speaks as much of Nacos' HTTP naming API as that package needs, with beats, UDP pushes,
// rollcall's watch and accounts, and fails on demand. It never expires an instance by
// itself: tests say when, with Expire.
//
// A test starts one, gives its URL to client.Options, and stops it after closing the
// client:
//
//	registry, err := fake.Start()
//	defer registry.Stop()
//	c, err := client.New(client.Options{Servers: []string{registry.URL()}})
//	defer c.Close(ctx)
//	registry.Put(fake.Instance{Service: "orders", IP: "10.0.0.1", Port: 80, Weight: 1, Enabled: true, Healthy: true})
package fake

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"time"
)

// Instance is what a fake server keeps. Nothing has a default but Service and Cluster: for
// one that gets traffic set Weight, Enabled and Healthy.
type Instance struct {
	Service   string // group@@name; DEFAULT_GROUP when it names no group
	Cluster   string // DEFAULT when empty
	IP        string
	Port      int
	Weight    float64 // 0 gets no traffic
	Enabled   bool    // false keeps it out of lists
	Healthy   bool
	Ephemeral bool              // lives by beats: only these are removed by Expire
	Metadata  map[string]string // shared with the server: not to be changed afterwards
}

// Server is a fake registry of one namespace: what requests say of namespaces is ignored.
// Make it with Start. Its methods are safe for concurrent use, and do not block but for
// Pause, Restart and Stop.
type Server struct {
	addr    string
	release func() error // of addr
	udp     *net.UDPConn

	mu          sync.Mutex
	http        *http.Server
	done        chan struct{} // closed when http has ended
	services    map[string]*service
	index       uint64
	changed     chan struct{}              // closed and replaced at each change
	subscribers map[string]map[string]bool // service to addresses
	status      int                        // of every answer, 0 for none of that
	user, pass  string
	plain       bool // no watch and no rollcall headers, like a stock Nacos
	light       bool
	interval    time.Duration
	beats       int
	requests    map[string]int
}

type service struct {
	stamp     int64
	index     uint64
	instances map[string]*held
}

type held struct {
	Instance
	beaten time.Time
}

// Start runs a fake registry on a free port of 127.0.0.1, and a UDP socket for pushes. End
// it with Stop. It does not block. The error is that of listening.
func Start() (*Server, error) {
	addr, release, err := hold()
	if err != nil {
		return nil, err
	}
	udp, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return nil, errors.Join(err, release())
	}
	s := &Server{
		addr: addr, release: release, udp: udp, services: map[string]*service{}, changed: make(chan struct{}), light: true,
		interval: 5 * time.Second, requests: map[string]int{}, subscribers: map[string]map[string]bool{},
	}
	if err := s.Restart(); err != nil {
		return nil, errors.Join(err, udp.Close(), release())
	}
	return s, nil
}

// URL is what to give to client.Options as a server. It stays the same over Pause and
// Restart.
func (s *Server) URL() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return "http://" + s.addr
}

// Restart listens again after Pause, on the same port; without a Pause before, it does
// nothing. The error is that of listening; other than on Linux, where the port is held, it
// comes when another process has taken the port meanwhile. Not after Stop.
func (s *Server) Restart() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.http != nil {
		return nil
	}
	ln, err := net.Listen("tcp4", s.addr)
	if err != nil {
		return err
	}
	s.addr = ln.Addr().String()
	server, done := &http.Server{Handler: s.handler(), ReadHeaderTimeout: 5 * time.Second}, make(chan struct{})
	s.http, s.done = server, done
	go func() {
		defer close(done)
		_ = server.Serve(ln) // ends by Close
	}()
	return nil
}

// Pause cuts all connections and refuses new ones until Restart, and waits until nobody
// listens. What is registered stays.
func (s *Server) Pause() {
	s.mu.Lock()
	server, done := s.http, s.done
	s.http = nil
	s.mu.Unlock()
	if server != nil {
		_ = server.Close() // that of a listener that is gone anyway
		<-done
	}
}

// Stop ends the server for good. Requests under way have 100 ms, then their connections are
// cut. The error joins those of closing; a second Stop gives net.ErrClosed.
func (s *Server) Stop() error {
	s.mu.Lock()
	server, done, release := s.http, s.done, s.release
	s.http, s.release = nil, func() error { return nil }
	close(s.changed) // ends watches
	s.changed = make(chan struct{})
	s.mu.Unlock()
	var err error
	if server != nil {
		ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
		defer cancel()
		if err = server.Shutdown(ctx); err != nil {
			err = server.Close()
		}
		<-done
	}
	return errors.Join(err, s.udp.Close(), release())
}

// Fail answers every request with this status, logins too; 0 ends it. Streams that are
// open go on.
func (s *Server) Fail(status int) { s.set(func() { s.status = status }) }

// Plain makes the server look like a stock Nacos: no watch, no index in the headers, lists
// stamped with the time of the answer. Set it before a client asks.
func (s *Server) Plain(on bool) { s.set(func() { s.plain = on }) }

// LightBeats sets whether answers allow beats without the instance's data; they do at
// first.
func (s *Server) LightBeats(on bool) { s.set(func() { s.light = on }) }

// BeatInterval sets what answers to beats ask for, in whole milliseconds; 5 s at first.
func (s *Server) BeatInterval(d time.Duration) { s.set(func() { s.interval = d }) }

// Login asks every request for a token of this account from now on, and makes those of
// other accounts worthless; an empty name ends it.
func (s *Server) Login(user, password string) { s.set(func() { s.user, s.pass = user, password }) }

func (s *Server) set(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

// Beats is how many beats were answered since Start.
func (s *Server) Beats() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.beats
}

// Requests is how many requests of a kind came since Start, refused ones too: verb and path,
// such as "GET /nacos/v1/ns/instance/list".
func (s *Server) Requests(kind string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests[kind]
}
