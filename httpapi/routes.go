package httpapi

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/gin-gonic/gin"
)

type route struct {
	method  string
	path    string
	access  access
	handler func(*Server, *request) error
}

const (
	nsPrefix      = "/nacos/v1/ns"
	consolePrefix = "/nacos/v1/console"
)

// allRoutes are all routes there are.
func allRoutes() []route {
	return slices.Concat(instanceRoutes, legacyRoutes, serviceRoutes, clusterRoutes,
		catalogRoutes, catalogInstanceRoutes, operatorRoutes, namespaceRoutes, coreRoutes, v2Routes, accountRoutes, roleRoutes, pushRoutes, watchRoutes, probeRoutes, statusRoutes)
}

// newEngine builds the router. Every route is known with and without a slash at its
// end, since some clients send one and none may be redirected.
func (s *Server) newEngine() *gin.Engine {
	gin.SetMode(gin.ReleaseMode)
	e := gin.New()
	s.paths = make(map[string]bool)
	e.RedirectTrailingSlash = false
	e.RedirectFixedPath = false
	e.HandleMethodNotAllowed = false
	e.ForwardedByClientIP = false
	if err := e.SetTrustedProxies(nil); err != nil { // never fails for nil
		s.log.Error("trusted proxies", "err", err)
	}
	for _, rt := range allRoutes() {
		h := s.adapt(rt)
		s.paths[rt.path] = strings.HasPrefix(rt.path, "/nacos/")
		e.Handle(rt.method, rt.path, h)
		e.Handle(rt.method, rt.path+"/", h)
	}
	e.NoRoute(s.adapt(route{path: "other", access: probe, handler: (*Server).noRoute}))
	return e
}

// adapt makes a route's handler one of gin's: it runs it and writes the error that it
// returns. All requests pass here.
func (s *Server) adapt(rt route) gin.HandlerFunc {
	m := s.metrics.route(rt)
	v2 := strings.HasPrefix(rt.path, v2Prefix)
	return func(c *gin.Context) {
		r := s.pool.Get().(*request)
		r.gin, r.start, r.v2 = c, time.Now(), v2
		defer s.finish(r, m)
		if err := s.run(r, rt); err != nil && !r.failAuth(err) {
			r.fail(err)
		}
	}
}

func (s *Server) run(r *request, rt route) error {
	if rt.access.state != needNothing {
		if err := s.ready(); err != nil {
			return err
		}
	}
	if err := r.readParams(); err != nil {
		return err
	}
	if err := s.authorize(r, rt.access); err != nil {
		return err
	}
	if rt.access.state == needConsistent {
		if err := s.consistent(r); err != nil {
			return err
		}
	}
	if r.v2 {
		if err := r.checkParams(); err != nil {
			return err
		}
	}
	return rt.handler(s, r)
}

// finish is deferred around each request: it answers a panic with 500, counts, logs and
// gives the request back to its pool.
func (s *Server) finish(r *request, m *routeMetrics) {
	if p := recover(); p != nil {
		if p == http.ErrAbortHandler {
			panic(p)
		}
		s.metrics.panics.Inc()
		s.log.Error("request panicked", "method", r.gin.Request.Method, "path", r.gin.Request.URL.Path,
			"panic", p, "stack", stack())
		if !r.gin.Writer.Written() {
			r.fail(&reply{status: http.StatusInternalServerError, text: internalText})
		}
	}
	took := time.Since(r.start)
	m.observe(r.gin.Writer.Status(), took)
	if n := s.opts.AccessLogEvery; n > 0 && s.log.IsDebug() && s.requests.Add(1)%n == 0 {
		s.log.Debug("request", "method", r.gin.Request.Method, "path", r.gin.Request.URL.Path,
			"status", r.gin.Writer.Status(), "took", took, "peer", r.gin.Request.RemoteAddr)
	}
	r.release()
}
