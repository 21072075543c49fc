package httpapi

import (
	"net/http"
	"strings"

	"github.com/rollcall-io/rollcall/registry"
)

// list is GET /instance/list: the instances of a service as a client should use them.
// An unknown service is no error but an empty list.
func (s *Server) list(r *request) error {
	key, err := r.requiredService()
	if err != nil {
		return err
	}
	return s.answerList(r, key)
}

func (s *Server) answerList(r *request, key registry.ServiceKey) error {
	view := listView{
		clusters:    r.optional("clusters", ""),
		env:         r.optional("env", ""),
		healthyOnly: strings.EqualFold(r.optional("healthyOnly", ""), "true"),
		grouped:     r.agent().grouped(),
		cacheMillis: s.opts.Reader.Switches().DefaultCacheMillis,
	}
	service := s.opts.Reader.Service(key)
	pushed, err := s.subscribe(r, key, view.clusters, service)
	if err != nil {
		return err
	}
	if pushed {
		view.cacheMillis = s.opts.Reader.Switches().DefaultPushCacheMillis
	}
	if service == nil {
		return r.json(appendUnknownList(r.buffer(), key, view))
	}
	if !view.cacheable(service) {
		checksum := s.lists.checksum(service)
		return r.json(appendList(r.buffer(), service, view, checksum))
	}
	body := s.lists.rendered(service, view)
	return body.sending(&s.answers, func() { r.send(http.StatusOK, typeJSON, body.length, body.bytes) })
}

// listView is what an answer depends on besides the service: two equal views of one
// service get the same bytes.
type listView struct {
	clusters    string // as the client gave it, trimmed: it is echoed
	env         string
	cacheMillis uint32
	healthyOnly bool
	grouped     bool
}

// cacheable tells whether the view may be kept. What a client can vary freely is not:
// only all clusters, or a single one that the service has.
func (v listView) cacheable(s *registry.Service) bool {
	if v.env != "" {
		return false
	}
	if v.clusters == "" {
		return true
	}
	_, known := s.Cluster(v.clusters)
	return known
}

// query is the selection that the view asks for. The list of clusters is split at commas;
// its parts are not trimmed, and empty ones do not count.
func (v listView) query() registry.Query {
	q := registry.Query{HealthyOnly: v.healthyOnly}
	if v.clusters == "" {
		return q
	}
	for _, name := range strings.Split(v.clusters, ",") {
		if name != "" {
			q.Clusters = append(q.Clusters, name)
		}
	}
	return q
}
