package httpapi

import "net/http"

var probeRoutes = []route{
	{http.MethodGet, "/metrics", figures, (*Server).showMetrics},
	{http.MethodGet, "/livez", probe, (*Server).live},
	{http.MethodGet, "/readyz", probe, (*Server).readyz},
	{http.MethodGet, consolePrefix + "/health/liveness", probe, (*Server).liveness},
	{http.MethodGet, consolePrefix + "/health/readiness", probe, (*Server).readiness},
}

// showMetrics is GET /metrics, in the text form of Prometheus.
func (s *Server) showMetrics(r *request) error {
	s.metrics.handler.ServeHTTP(r.gin.Writer, r.gin.Request)
	return nil
}

// live is 200 as long as the process answers at all.
func (s *Server) live(r *request) error { return r.ok() }

// readyz is 200 while this node has caught up with the cluster, else 503 with the reason.
func (s *Server) readyz(r *request) error {
	if err := s.opts.Cluster.Ready(); err != nil {
		return r.text(http.StatusServiceUnavailable, err.Error())
	}
	return r.ok()
}

// liveness and readiness are Nacos' own probes.
func (s *Server) liveness(r *request) error { return r.text(http.StatusOK, "OK") }

func (s *Server) readiness(r *request) error {
	if s.opts.Cluster.Ready() != nil {
		return r.text(http.StatusInternalServerError, "Naming is not in readiness")
	}
	return r.text(http.StatusOK, "OK")
}
