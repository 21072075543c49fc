package httpapi

import (
	"net/http"

	"github.com/rollcall-io/rollcall/registry"
)

var v2OperatorRoutes = append(v2OperatorRoutesUnder(v2NsPrefix+"/operator"), v2OperatorRoutesUnder(v2NsPrefix+"/ops")...)

func v2OperatorRoutesUnder(prefix string) []route {
	return []route{
		{http.MethodGet, prefix + "/switches", shared, (*Server).v2Switches},
		{http.MethodPut, prefix + "/switches", adminWrite, (*Server).v2SetSwitch},
		{http.MethodGet, prefix + "/metrics", shared, (*Server).v2Metrics},
	}
}

func (s *Server) v2Switches(r *request) error {
	return r.json(append(s.appendSwitches(r.v2Begin()), '}'))
}

// v2SetSwitch is PUT /ops/switches. As in v1 an unknown entry is refused by name.
func (s *Server) v2SetSwitch(r *request) error {
	entry, value := r.optional("entry", ""), r.optional("value", "")
	if entry == "" {
		return v2Missing("entry", "String")
	}
	if value == "" {
		return v2Missing("value", "String")
	}
	c, err := s.switchCommand(entry, value)
	if err != nil {
		return err
	}
	return r.v2Commit(c)
}

// v2Metrics is GET /ops/metrics: the status alone unless onlyStatus is false. Clients are
// counted as registrations, of which a client may have several.
func (s *Server) v2Metrics(r *request) error {
	onlyStatus, err := r.v2Flag("onlyStatus", true)
	if err != nil {
		return err
	}
	b := append(r.v2Begin(), `{"status":"UP"`...)
	if onlyStatus {
		return r.json(append(b, "}}"...))
	}
	services, instances := s.opts.Reader.Counts()
	var ephemeral, persistent int64
	s.eachInstance(func(_ *registry.Service, in *registry.Instance) bool {
		if in.Ephemeral {
			ephemeral++
		} else {
			persistent++
		}
		return true
	})
	b = appendInt(append(b, `,"serviceCount":`...), int64(services))
	b = appendInt(append(b, `,"instanceCount":`...), int64(instances))
	b = appendInt(append(b, `,"subscribeCount":0,"clientCount":`...), ephemeral+persistent)
	b = appendInt(append(b, `,"connectionBasedClientCount":0,"ephemeralIpPortClientCount":`...), ephemeral)
	b = appendInt(append(b, `,"persistentIpPortClientCount":`...), persistent)
	b = appendInt(append(b, `,"responsibleClientCount":`...), ephemeral+persistent)
	b = appendDouble(append(b, `,"cpu":-1.0,"load":`...), loadAverage())
	b = appendDouble(append(b, `,"mem":`...), memoryUsed())
	return r.json(append(b, "}}"...))
}
