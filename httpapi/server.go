package httpapi

import (
	"context"
	"fmt"
	"log"
	"net"
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/gin-gonic/gin"
	"github.com/hashicorp/go-hclog"

	"github.com/rollcall-io/rollcall/registry"

	"github.com/rollcall-io/rollcall/auth"
)

// Server answers HTTP requests. Make one with New; its methods are safe for concurrent
// use. It owns no goroutine and no socket: HTTPServer makes the thing that listens.
type Server struct {
	opts    Options
	log     hclog.Logger
	engine  *gin.Engine
	metrics *metrics
	lists   *listCache
	bodies  budget        // what clients send
	answers budget        // what they take
	streams budget        // what they are told by streams
	renders chan struct{} // the turns of streams
	once    onceLog
	paths   map[string]bool // of Nacos' routes; not changed after New
	headers answerHeaders
	pool    sync.Pool

	// wasReady is set at the first sight of a ready node: from then on it goes on
	// serving reads, stale when it has lost its leader, and never says STARTING again.
	wasReady atomic.Bool
	requests atomic.Uint64 // counted for the access log's sampling
}

// New builds the routes and registers the metrics. The error lists every option that
// is missing or out of range.
func New(opts Options) (*Server, error) {
	if err := opts.validate(); err != nil {
		return nil, fmt.Errorf("http api options: %w", err)
	}
	if opts.Status == nil {
		opts.Status = func() registry.NodeStatus {
			return registry.NodeStatus{ID: opts.Cluster.NodeID(), Members: opts.Cluster.Members()}
		}
	}
	m, err := newMetrics(opts.Metrics)
	if err != nil {
		return nil, fmt.Errorf("http api metrics: %w", err)
	}
	if opts.Auth == nil {
		opts.Auth = auth.New(auth.Options{Accounts: opts.Reader.Accounts})
	}
	s := &Server{opts: opts, log: opts.Logger, metrics: m, lists: newListCache(opts.ListCacheBytes, m),
		renders: make(chan struct{}, rendersAtOnce)}
	s.bodies.limit, s.answers.limit, s.streams.limit = opts.MaxBodies, opts.MaxAnswers, opts.MaxStreams
	s.headers.node = []string{opts.Cluster.NodeID()}
	s.pool.New = func() any { return &request{srv: s} }
	s.engine = s.newEngine()
	return s, nil
}

// Handler is the whole face as a handler, for tests and embedding.
func (s *Server) Handler() http.Handler { return s.engine }

// HTTPServer is a server for Handler with all limits set. Requests live as long as base:
// when it is cancelled, what waits inside a request ends. The caller serves a listener
// with it and shuts it down.
func (s *Server) HTTPServer(base context.Context) *http.Server {
	return &http.Server{
		Handler:           s.engine,
		MaxHeaderBytes:    s.opts.MaxHeader,
		ReadHeaderTimeout: s.opts.HeaderTimeout,
		ReadTimeout:       s.opts.RequestTimeout,
		WriteTimeout:      s.opts.AnswerTimeout,
		IdleTimeout:       s.opts.IdleTimeout,
		BaseContext:       func(net.Listener) context.Context { return base },
		ErrorLog:          s.errorLog(),
	}
}

// errorLog takes what net/http says of connections: clients' faults, so debug.
func (s *Server) errorLog() *log.Logger {
	return s.log.StandardLogger(&hclog.StandardLoggerOptions{ForceLevel: hclog.Debug})
}

// ready is nil once this node has been ready; before, it is what clients are told.
func (s *Server) ready() error {
	if s.wasReady.Load() {
		return nil
	}
	if err := s.opts.Cluster.Ready(); err != nil {
		return &reply{status: http.StatusServiceUnavailable, text: notReadyText, bare: true}
	}
	s.wasReady.Store(true)
	return nil
}
