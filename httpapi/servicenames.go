package httpapi

import (
	"slices"

	"github.com/rollcall-io/rollcall/registry"
)

// serviceNames is GET /service/names: bare names by namespace, of one or of all. count
// is the number of namespaces, those without a match included.
func (s *Server) serviceNames(r *request) error {
	pattern, err := r.namePattern("expr")
	if err != nil {
		return err
	}
	ids := s.opts.Reader.NamespaceIDs()
	if id := r.optional("namespaceId", ""); id != "" {
		ids = []string{id}
	}
	b := append(r.buffer(), `{"services":{`...)
	for i, id := range ids {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendString(b, id)
		b = append(b, ':')
		b = appendNames(b, s.opts.Reader.Services(id), pattern)
	}
	if err := pattern.err(); err != nil {
		return err
	}
	b = appendInt(append(b, `},"count":`...), int64(len(ids)))
	return r.json(append(b, '}'))
}

// appendNames appends the bare names of the services that match, each once.
func appendNames(b []byte, services []*registry.Service, pattern *namePattern) []byte {
	names := make([]string, 0, len(services))
	for _, service := range services {
		if pattern.matches(service.Key.Grouped) {
			names = append(names, service.Key.Name())
		}
	}
	slices.Sort(names)
	b = append(b, '[')
	for i, name := range slices.Compact(names) {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendString(b, name)
	}
	return append(b, ']')
}
