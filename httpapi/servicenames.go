package httpapi

import (
	"regexp"
	"slices"
	"strings"

	"github.com/rollcall-io/rollcall/registry"
)

// maxPattern bounds a regular expression that a request sends.
const maxPattern = 256

// serviceNames is GET /service/names: bare names by namespace, of one or of all. count
// is the number of namespaces, those without a match included.
func (s *Server) serviceNames(r *request) error {
	pattern, err := namePattern("expr", r.optional("expr", ""))
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
	b = appendInt(append(b, `},"count":`...), int64(len(ids)))
	return r.json(append(b, '}'))
}

// appendNames appends the bare names of the services that match, each once.
func appendNames(b []byte, services []*registry.Service, pattern *regexp.Regexp) []byte {
	names := make([]string, 0, len(services))
	for _, service := range services {
		if pattern == nil || pattern.MatchString(service.Key.Grouped) {
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

// namePattern compiles a regular expression from the parameter called name, nil when it
// is empty. The syntax is RE2's, so no expression takes more than linear time.
func namePattern(name, text string) (*regexp.Regexp, error) {
	if text == "" {
		return nil, nil
	}
	if len(text) > maxPattern {
		return nil, registry.Invalid(name, text, "is too long for a pattern")
	}
	pattern, err := regexp.Compile(text)
	if err != nil {
		reason := strings.TrimPrefix(err.Error(), "error parsing regexp: ")
		return nil, registry.Invalid(name, text, "is no regular expression: "+reason)
	}
	return pattern, nil
}
