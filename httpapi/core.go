package httpapi

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/rollcall-io/rollcall/registry"
)

const corePrefix = "/nacos/v1/core"

// nacosVersion is the edition whose answers the v1 routes give.
const nacosVersion = "1.4.7"

var coreRoutes = []route{
	{http.MethodGet, consolePrefix + "/server/state", shared, (*Server).serverState},
	{http.MethodGet, "/nacos/actuator/health", probe, (*Server).actuatorHealth},
	{http.MethodGet, corePrefix + "/cluster/nodes", shared, (*Server).coreNodes},
	{http.MethodGet, corePrefix + "/cluster/self", shared, (*Server).coreSelf},
	{http.MethodGet, corePrefix + "/cluster/simple/nodes", shared, (*Server).coreAddresses},
	{http.MethodGet, corePrefix + "/cluster/health", shared, (*Server).coreHealth},
	{http.MethodPut, corePrefix + "/ops/log", adminWrite, (*Server).coreLog},
}

var typeActuator = []string{"application/vnd.spring-boot.actuator.v3+json"}

// serverState is GET /console/server/state.
func (s *Server) serverState(r *request) error {
	mode := "standalone"
	if len(s.opts.Cluster.Members()) > 1 {
		mode = "cluster"
	}
	b := appendString(append(r.buffer(), `{"version":"`+nacosVersion+`","standalone_mode":`...), mode)
	return r.json(append(b, `,"function_mode":null}`...))
}

// actuatorHealth is what Spring Boot's probe answers: 503 while the node is not ready.
func (s *Server) actuatorHealth(r *request) error {
	if s.opts.Cluster.Ready() != nil {
		return r.write(http.StatusServiceUnavailable, typeActuator, append(r.buffer(), `{"status":"DOWN"}`...))
	}
	return r.write(http.StatusOK, typeActuator, append(r.buffer(), `{"status":"UP"}`...))
}

// coreNodes is GET /core/cluster/nodes: the members whose client address starts with
// keyword. As in /operator/servers a member without a known client address is left out.
func (s *Server) coreNodes(r *request) error {
	return r.json(append(s.appendNodes(envelope(r), r.optional("keyword", "")), '}'))
}

// envelope begins the answer of a core route; the data and a brace follow.
func envelope(r *request) []byte {
	return append(r.buffer(), `{"code":200,"message":null,"data":`...)
}

// appendNodes appends the array of members.
func (s *Server) appendNodes(b []byte, prefix string) []byte {
	b = append(b, '[')
	first := true
	for _, m := range s.opts.Cluster.Members() {
		if m.Address == "" || !strings.HasPrefix(m.Address, prefix) {
			continue
		}
		if !first {
			b = append(b, ',')
		}
		first = false
		b = appendMember(b, m)
	}
	return append(b, ']')
}

// self is this node among the members. Before the node knows the membership it is a
// member without addresses.
func (s *Server) self() registry.Member {
	id := s.opts.Cluster.NodeID()
	for _, m := range s.opts.Cluster.Members() {
		if m.ID == id {
			return m
		}
	}
	return registry.Member{ID: id, State: registry.MemberStarting}
}

func (s *Server) coreSelf(r *request) error {
	return r.json(append(appendMember(envelope(r), s.self()), '}'))
}

func (s *Server) coreAddresses(r *request) error {
	b := append(envelope(r), '[')
	first := true
	for _, m := range s.opts.Cluster.Members() {
		if m.Address == "" {
			continue
		}
		if !first {
			b = append(b, ',')
		}
		first = false
		b = appendString(b, m.Address)
	}
	return r.json(append(b, "]}"...))
}

// coreHealth is GET /core/cluster/health: the state of the node that is asked.
func (s *Server) coreHealth(r *request) error {
	return r.json(append(appendString(envelope(r), s.self().State), '}'))
}

// coreLog is PUT /core/ops/log, which answers the text `200`.
func (s *Server) coreLog(r *request) error {
	if err := s.setLogLevel(r); err != nil {
		return err
	}
	return r.text(http.StatusOK, strconv.Itoa(http.StatusOK))
}
