package httpapi

import (
	"errors"
	"net/http"
	"strings"

	"github.com/rollcall-io/rollcall/registry"
)

const v2NamespacePath = v2ConsolePrefix + "/namespace"

var v2ConsoleRoutes = []route{
	{http.MethodGet, v2NamespacePath, shared, (*Server).v2Namespace},
	{http.MethodGet, v2NamespacePath + "/list", shared, (*Server).v2Namespaces},
	{http.MethodPost, v2NamespacePath, adminWrite, (*Server).v2CreateNamespace},
	{http.MethodPut, v2NamespacePath, adminWrite, (*Server).v2UpdateNamespace},
	{http.MethodDelete, v2NamespacePath, adminWrite, (*Server).v2DeleteNamespace},
	{http.MethodGet, v2ConsolePrefix + "/health/liveness", probe, (*Server).v2Liveness},
	{http.MethodGet, v2ConsolePrefix + "/health/readiness", probe, (*Server).v2Readiness},
	{http.MethodGet, v2CorePrefix + "/cluster/node/self", shared, (*Server).v2Self},
	{http.MethodGet, v2CorePrefix + "/cluster/node/list", shared, (*Server).v2Nodes},
	{http.MethodGet, v2CorePrefix + "/cluster/node/self/health", shared, (*Server).v2SelfHealth},
	{http.MethodPut, v2CorePrefix + "/ops/log", adminWrite, (*Server).v2Log},
}

// maxV2NamespaceName bounds the name of a namespace in the open API, in bytes.
const maxV2NamespaceName = 256

// appendLaterNamespace appends a namespace; one without a description has a null there.
func appendLaterNamespace(b []byte, n registry.Namespace) []byte {
	b = appendString(append(b, `{"namespace":`...), n.ID)
	b = appendString(append(b, `,"namespaceShowName":`...), n.Name)
	b = append(b, `,"namespaceDesc":`...)
	if n.Description == "" {
		b = append(b, "null"...)
	} else {
		b = appendString(b, n.Description)
	}
	b = appendInt(append(b, `,"quota":`...), namespaceQuota)
	return append(appendInt(append(b, `,"configCount":0,"type":`...), namespaceType(n)), '}')
}

func (s *Server) v2Namespace(r *request) error {
	id, found := r.params.get("namespaceId")
	if !found {
		return v2Unbound("namespaceId")
	}
	n, found := s.namespaceRecord(id)
	if !found {
		return v2Error(http.StatusNotFound, codeNamespaceMissing, "namespaceId [ "+shorten(id)+" ] not exist")
	}
	if n.ID == "" {
		n.Description = "Default Namespace"
	}
	return r.json(append(appendLaterNamespace(r.v2Begin(), n), '}'))
}

func (s *Server) v2Namespaces(r *request) error {
	b := appendLaterNamespace(append(r.v2Begin(), '['), publicNamespace)
	for _, n := range s.opts.Reader.Namespaces() {
		b = appendLaterNamespace(append(b, ','), n)
	}
	return r.json(append(b, "]}"...))
}

// v2NamespaceForm reads the record that POST and PUT describe.
func (r *request) v2NamespaceForm() (registry.Namespace, error) {
	n := registry.Namespace{ID: r.optional("namespaceId", ""), Name: r.optional("namespaceName", ""),
		Description: r.optional("namespaceDesc", "")}
	if n.Name == "" {
		return n, v2Error(http.StatusBadRequest, codeMissing, "required parameter 'namespaceName' is missing")
	}
	if strings.IndexByte(n.Name, '@') >= 0 || len(n.Name) > maxV2NamespaceName {
		return n, badParam("Param 'namespaceShowName' is illegal, illegal characters should not appear in the param.")
	}
	return n, nil
}

func (s *Server) v2CreateNamespace(r *request) error {
	n, err := r.v2NamespaceForm()
	if err != nil {
		return err
	}
	if n.ID == "" {
		n.ID = randomUUID()
	}
	if n.ID == registry.DefaultNamespace {
		err = registry.ErrNamespaceExists
	} else if err = registry.ValidateNamespaceRecord(n); err == nil {
		_, err = r.propose(registry.NamespaceCreate{Namespace: n})
	}
	if errors.Is(err, registry.ErrNamespaceExists) {
		return v2Error(http.StatusBadRequest, codeNamespaceIllegal, "the namespaceId is existed, namespaceId: "+n.ID)
	}
	return r.v2Done(err)
}

func (s *Server) v2UpdateNamespace(r *request) error {
	n, err := r.v2NamespaceForm()
	if err != nil {
		return err
	}
	if n.ID == "" {
		return v2Error(http.StatusBadRequest, codeMissing, "required parameter 'namespaceId' is missing")
	}
	_, err = r.propose(registry.NamespaceUpdate{Namespace: n})
	return r.v2Done(err)
}

func (s *Server) v2DeleteNamespace(r *request) error {
	id, found := r.params.get("namespaceId")
	if !found {
		return v2Unbound("namespaceId")
	}
	return r.v2Done(r.dropNamespace(id))
}

// v2Done answers true when nothing went wrong or the namespace is not there.
func (r *request) v2Done(err error) error {
	if err != nil && !errors.Is(err, registry.ErrNamespaceNotFound) {
		return err
	}
	return r.v2True()
}

func (s *Server) v2Liveness(r *request) error { return r.v2OK() }

func (s *Server) v2Readiness(r *request) error {
	if s.opts.Cluster.Ready() != nil {
		return v2Error(http.StatusInternalServerError, codeServer, "Naming is not in readiness")
	}
	return r.v2OK()
}

func (s *Server) v2Self(r *request) error {
	return r.json(append(appendMember(r.v2Begin(), s.self()), '}'))
}

// v2Nodes is GET /cluster/node/list: members whose address starts with `address`.
func (s *Server) v2Nodes(r *request) error {
	return r.json(append(s.appendNodes(r.v2Begin(), r.optional("address", "")), '}'))
}

func (s *Server) v2SelfHealth(r *request) error {
	return r.json(append(appendString(r.v2Begin(), s.self().State), '}'))
}

func (s *Server) v2Log(r *request) error {
	if r.optional("logName", "") == "" || r.optional("logLevel", "") == "" {
		return v2Missing("logName and logLevel", "String")
	}
	if err := s.setLogLevel(r); err != nil {
		return err
	}
	return r.json(append(r.v2Begin(), "null}"...))
}
