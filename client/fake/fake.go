// Package fake is a registry in memory for tests of services that use package client. It
// speaks as much of Nacos' HTTP naming API as that package needs, with beats, UDP pushes,
// rollcall's watch and accounts, and fails on demand. It never expires an instance by
// itself: tests say when, with Expire.
package fake

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"time"
)

// Instance is what a fake server keeps.
type Instance struct {
	Service   string // group@@name
	Cluster   string
	IP        string
	Port      int
	Weight    float64
	Enabled   bool
	Healthy   bool
	Ephemeral bool
	Metadata  map[string]string
}

// Server is a fake registry of one namespace: what requests say of namespaces is ignored.
// Its methods are safe for concurrent use and do not block, except Stop and Restart.
type Server struct {
	addr string
	udp  *net.UDPConn

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

// Start runs a fake registry on a free port of the loopback interface. End it with Stop.
// The error is that of listening.
func Start() (*Server, error) {
	udp, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return nil, err
	}
	s := &Server{
		addr: "127.0.0.1:0", udp: udp, services: map[string]*service{}, changed: make(chan struct{}), light: true,
		interval: 5 * time.Second, requests: map[string]int{}, subscribers: map[string]map[string]bool{},
	}
	if err := s.Restart(); err != nil {
		udp.Close()
		return nil, err
	}
	return s, nil
}

// URL is what to give to client.Options as a server.
func (s *Server) URL() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return "http://" + s.addr
}

// Restart listens again after Pause, on the same port. It fails when that is taken.
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

// Pause cuts all connections and refuses new ones until Restart. What is registered stays.
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

// Stop ends the server and waits for its requests.
func (s *Server) Stop() error {
	s.mu.Lock()
	server, done := s.http, s.done
	s.http = nil
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
	return errors.Join(err, s.udp.Close())
}

// Fail answers every request with this status; 0 ends it.
func (s *Server) Fail(status int) { s.set(func() { s.status = status }) }

// Plain makes the server look like a stock Nacos: no watch, no index in the headers.
func (s *Server) Plain(on bool) { s.set(func() { s.plain = on }) }

// LightBeats tells whether beats may go without the instance's data; they may at first.
func (s *Server) LightBeats(on bool) { s.set(func() { s.light = on }) }

// BeatInterval is what answers to beats ask for; 5 s at first.
func (s *Server) BeatInterval(d time.Duration) { s.set(func() { s.interval = d }) }

// Login asks for this account from now on, and forgets all tokens; an empty name ends it.
func (s *Server) Login(user, password string) { s.set(func() { s.user, s.pass = user, password }) }

func (s *Server) set(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

// Beats is how many beats came.
func (s *Server) Beats() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.beats
}

// Requests is how many requests of a kind came, such as "GET /nacos/v1/ns/instance/list".
func (s *Server) Requests(kind string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests[kind]
}
