package httpapi

import (
	"net/http"

	"github.com/rollcall-io/rollcall/registry"
)

// legacyRoutes are those of the 0.x clients. Under /api the instance controller answers
// too, since Nacos' old controller extends it.
var legacyRoutes = append(instanceRoutesUnder(nsPrefix+"/api"),
	route{http.MethodGet, nsPrefix + "/api/srvIPXT", domReads, (*Server).legacyList},
	route{http.MethodGet, nsPrefix + "/api/clientBeat", write, (*Server).beat},
	route{http.MethodGet, nsPrefix + "/api/allDomNames", allNames, (*Server).legacyNames},
)

// legacyList is GET /api/srvIPXT: the list of the service named by dom, always in the
// default group unless the name itself says otherwise.
func (s *Server) legacyList(r *request) error {
	dom, err := r.required("dom")
	if err != nil {
		return err
	}
	key := r.domService(dom)
	if err := checkGrouped(key.Grouped); err != nil {
		return err
	}
	return s.answerList(r, key)
}

func (r *request) domService(dom string) registry.ServiceKey {
	return registry.NewServiceKey(r.namespace(), registry.DefaultGroup, dom)
}

// legacyNames is GET /api/allDomNames: bare names by namespace. count is the number of
// services.
func (s *Server) legacyNames(r *request) error {
	b := append(r.buffer(), `{"count":`...)
	services, _ := s.opts.Reader.Counts()
	b = append(appendInt(b, int64(services)), `,"doms":{`...)
	for i, id := range s.opts.Reader.NamespaceIDs() {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(appendString(b, id), ':')
		b = appendNames(b, s.opts.Reader.Services(id), nil)
	}
	return r.json(append(b, "}}"...))
}
