package httpapi

import (
	"crypto/rand"
	"errors"
	"net/http"
	"strconv"

	"github.com/rollcall-io/rollcall/registry"
)

const namespacesPath = consolePrefix + "/namespaces"

var namespaceRoutes = []route{
	{http.MethodGet, namespacesPath, shared, (*Server).namespaces},
	{http.MethodPost, namespacesPath, adminWrite, (*Server).createNamespace},
	{http.MethodPut, namespacesPath, adminWrite, (*Server).updateNamespace},
	{http.MethodDelete, namespacesPath, adminWrite, (*Server).deleteNamespace},
}

// Kinds of a namespace as the console shows them.
const (
	namespacePublic = 0
	namespaceCustom = 2
)

// namespaceQuota is what Nacos says of every namespace: configurations that it may hold.
const namespaceQuota = 200

// namespaces is GET /console/namespaces: all records, or one with `show=all`, or whether
// one exists. The default namespace has the empty id here, `public` everywhere else.
func (s *Server) namespaces(r *request) error {
	if r.optional("show", "") == "all" {
		return s.namespaceDetail(r)
	}
	if isTrue(r.optional("checkNamespaceIdExist", "")) {
		id, err := r.bound("customNamespaceId")
		if err != nil {
			return err
		}
		_, found := s.namespaceRecord(id)
		return r.json(strconv.AppendBool(r.buffer(), found))
	}
	b := append(r.buffer(), `{"code":200,"message":null,"data":[`...)
	b = appendNamespace(b, publicNamespace)
	for _, n := range s.opts.Reader.Namespaces() {
		b = appendNamespace(append(b, ','), n)
	}
	return r.json(append(b, "]}"...))
}

var publicNamespace = registry.Namespace{Name: registry.DefaultNamespace}

func appendNamespace(b []byte, n registry.Namespace) []byte {
	b = appendString(append(b, `{"namespace":`...), n.ID)
	b = appendString(append(b, `,"namespaceShowName":`...), n.Name)
	b = appendInt(append(b, `,"quota":`...), namespaceQuota)
	return append(appendInt(append(b, `,"configCount":0,"type":`...), namespaceType(n)), '}')
}

func namespaceType(n registry.Namespace) int64 {
	if n.ID == "" {
		return namespacePublic
	}
	return namespaceCustom
}

// namespaceRecord is the record of an id; the default namespace always has one.
func (s *Server) namespaceRecord(id string) (registry.Namespace, bool) {
	if id == "" || id == registry.DefaultNamespace {
		return publicNamespace, true
	}
	for _, n := range s.opts.Reader.Namespaces() {
		if n.ID == id {
			return n, true
		}
	}
	return registry.Namespace{}, false
}

func (s *Server) namespaceDetail(r *request) error {
	id, err := r.bound("namespaceId")
	if err != nil {
		return err
	}
	n, found := s.namespaceRecord(id)
	if !found {
		return registry.ErrNamespaceNotFound.Because("namespaceId [ " + shorten(id) + " ] not exist")
	}
	if n.ID == "" {
		n.Name, n.Description = "Public", "Public Namespace"
	}
	b := appendString(append(r.buffer(), `{"namespace":`...), n.ID)
	b = appendString(append(b, `,"namespaceShowName":`...), n.Name)
	b = appendInt(append(b, `,"quota":`...), namespaceQuota)
	b = appendInt(append(b, `,"configCount":0,"type":`...), namespaceType(n))
	b = appendString(append(b, `,"namespaceDesc":`...), n.Description)
	return r.json(append(b, '}'))
}

// createNamespace is POST /console/namespaces. An id that is illegal or taken is answered
// 200 and `false`, as Nacos does; without an id a random one is made.
func (s *Server) createNamespace(r *request) error {
	id, err := r.bound("customNamespaceId")
	if err != nil {
		return err
	}
	name, err := r.bound("namespaceName")
	if err != nil {
		return err
	}
	if id = javaTrim(id); id == "" {
		id = randomUUID()
	}
	n := registry.Namespace{ID: id, Name: name, Description: r.optional("namespaceDesc", "")}
	if !namespaceID(id, registry.MaxNamespace) || id == registry.DefaultNamespace || registry.ValidateNamespaceRecord(n) != nil {
		return r.json(append(r.buffer(), "false"...))
	}
	_, err = r.propose(registry.NamespaceCreate{Namespace: n})
	if errors.Is(err, registry.ErrNamespaceExists) {
		return r.json(append(r.buffer(), "false"...))
	}
	return r.answerTrue(err)
}

// namespaceID tells whether an id has the characters that Nacos allows in one that is
// made by hand: letters, digits, `_` and `-`, at most limit of them.
func namespaceID(id string, limit int) bool {
	return id != "" && len(id) <= limit && allBytes(id, "_-")
}

// randomUUID is a version 4 UUID.
func randomUUID() string {
	var u [16]byte
	_, _ = rand.Read(u[:]) // never fails
	u[6], u[8] = u[6]&0x0f|0x40, u[8]&0x3f|0x80
	text := make([]byte, 0, 36)
	for i, c := range u {
		if i == 4 || i == 6 || i == 8 || i == 10 {
			text = append(text, '-')
		}
		text = append(text, hexDigits[c>>4], hexDigits[c&15])
	}
	return string(text)
}

// updateNamespace is PUT /console/namespaces; `true` for an unknown id too.
func (s *Server) updateNamespace(r *request) error {
	id, err := r.bound("namespace")
	if err != nil {
		return err
	}
	name, err := r.bound("namespaceShowName")
	if err != nil {
		return err
	}
	_, err = r.propose(registry.NamespaceUpdate{Namespace: registry.Namespace{
		ID: id, Name: name, Description: r.optional("namespaceDesc", "")}})
	return r.answerTrue(err)
}

// deleteNamespace is DELETE /console/namespaces: `true` for an unknown id too, refused
// while there are services in the namespace.
func (s *Server) deleteNamespace(r *request) error {
	id, err := r.bound("namespaceId")
	if err != nil {
		return err
	}
	return r.answerTrue(r.dropNamespace(id))
}

// dropNamespace removes a namespace that is not the default one.
func (r *request) dropNamespace(id string) error {
	if id == "" || id == registry.DefaultNamespace {
		return registry.Invalid("namespaceId", id, "the default namespace cannot be deleted")
	}
	_, err := r.propose(registry.NamespaceDelete{ID: id})
	return err
}

// answerTrue answers `true` when nothing went wrong or the namespace is not there.
func (r *request) answerTrue(err error) error {
	if err != nil && !errors.Is(err, registry.ErrNamespaceNotFound) {
		return err
	}
	return r.json(append(r.buffer(), "true"...))
}
