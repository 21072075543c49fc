package httpapi

import (
	"net/http"
	"strings"

	"github.com/hashicorp/go-hclog"

	"github.com/rollcall-io/rollcall/registry"
)

// nodeRoutesUnder are the operator routes that show or set something of the node that is
// asked.
func nodeRoutesUnder(prefix string) []route {
	return []route{
		{http.MethodGet, prefix + "/cluster/state", shared, (*Server).clusterState},
		{http.MethodGet, prefix + "/distro/server", reads, (*Server).responsibleServer},
		{http.MethodGet, prefix + "/distro/status", shared, (*Server).distroStatus},
		{http.MethodGet, prefix + "/server/status", shared, (*Server).reportStatus},
		{http.MethodPut, prefix + "/log", adminWrite, (*Server).operatorLog},
	}
}

// clusterState is GET /operator/cluster/state: this node as a Raft peer. Nacos' own two
// countdowns have no counterpart and are 0; voteFor is the leader's address.
func (s *Server) clusterState(r *request) error {
	self := s.self()
	leader, term, leads := s.opts.Cluster.Leader()
	state := "FOLLOWER"
	switch {
	case leads:
		state = "LEADER"
	case leader == "":
		state = "CANDIDATE"
	}
	b := appendString(append(r.buffer(), `{"ip":`...), self.Address)
	for _, m := range s.opts.Cluster.Members() {
		if m.ID == leader && m.Address != "" {
			b = appendString(append(b, `,"voteFor":`...), m.Address)
		}
	}
	b = appendInt(append(b, `,"term":`...), int64(term))
	b = appendString(append(b, `,"leaderDueMs":0,"heartbeatDueMs":0,"state":`...), state)
	return r.json(append(b, '}'))
}

// responsibleServer is GET /operator/distro/server. Every node answers everything, so
// the node that is asked is as responsible as any.
func (s *Server) responsibleServer(r *request) error {
	key, err := r.requiredServiceUnchecked()
	if err != nil {
		return err
	}
	if s.opts.Reader.Service(key) == nil {
		return illegal("service not found")
	}
	b := appendString(append(r.buffer(), `{"responsibleServer":`...), s.self().Address)
	return r.json(append(b, '}'))
}

// distroStatus is GET /operator/distro/status: the members, for the action `view` alone.
func (s *Server) distroStatus(r *request) error {
	if r.optional("action", "view") != "view" {
		return r.json(append(r.buffer(), "{}"...))
	}
	b := append(r.buffer(), `{"status":`...)
	return r.json(append(s.appendNodes(b, ""), '}'))
}

// reportStatus is GET /operator/server/status, by which old Nacos servers told each other
// that they live. It is `ok` and changes nothing.
func (s *Server) reportStatus(r *request) error {
	if _, err := r.required("serverStatus"); err != nil {
		return err
	}
	return r.ok()
}

// operatorLog is PUT /operator/log.
func (s *Server) operatorLog(r *request) error {
	if err := s.setLogLevel(r); err != nil {
		return err
	}
	return r.ok()
}

// setLogLevel sets the level of this node's log until it is restarted. Nacos has a log
// for each part; the names of those (`naming-…`, `core-…`, also `root`) all mean the one
// that there is, and other names are ignored as there.
func (s *Server) setLogLevel(r *request) error {
	name, err := r.bound("logName")
	if err != nil {
		return err
	}
	text, err := r.bound("logLevel")
	if err != nil {
		return err
	}
	level := hclog.LevelFromString(text)
	if level == hclog.NoLevel {
		return registry.Invalid("logLevel", text, "must be trace, debug, info, warn, error or off")
	}
	if name == "root" || strings.HasPrefix(name, "naming-") || strings.HasPrefix(name, "core-") {
		s.log.SetLevel(level)
		s.log.Warn("log level set by a request", "level", level.String(), "peer", r.gin.Request.RemoteAddr)
	}
	return nil
}
