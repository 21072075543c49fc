package httpapi

import (
	"errors"
	"net/http"

	"github.com/rollcall-io/rollcall/registry"
)

var v2ServiceRoutes = []route{
	{http.MethodPost, v2NsPrefix + "/service", write, (*Server).v2CreateService},
	{http.MethodPut, v2NsPrefix + "/service", write, (*Server).v2UpdateService},
	{http.MethodDelete, v2NsPrefix + "/service", write, (*Server).v2DeleteService},
	{http.MethodGet, v2NsPrefix + "/service", reads, (*Server).v2GetService},
	{http.MethodGet, v2NsPrefix + "/service/list", scans, (*Server).v2ServiceList},
	{http.MethodPut, v2NsPrefix + "/health", write, (*Server).v2SetHealth},
	{http.MethodPut, v2NsPrefix + "/health/instance", write, (*Server).v2SetHealth},
	{http.MethodGet, v2NsPrefix + "/catalog/instances", reads, (*Server).v2CatalogInstances},
}

// v2ServiceForm reads the service that POST and PUT describe.
func (r *request) v2ServiceForm() (key registry.ServiceKey, spec registry.ServiceSpec, err error) {
	if key, err = r.v2Service(v2Missing("serviceName", "String")); err != nil {
		return key, spec, err
	}
	if v := r.optional("protectThreshold", ""); v != "" {
		if spec.ProtectThreshold, err = threshold(v); err != nil {
			return key, spec, err
		}
	}
	if spec.Metadata, err = r.v2Metadata(); err != nil {
		return key, spec, err
	}
	if spec.Selector, err = parseSelector(r.optional("selector", "")); err != nil {
		return key, spec, v2Error(http.StatusBadRequest, codeSelector, err.Error())
	}
	return key, spec, nil
}

func (s *Server) v2CreateService(r *request) error {
	key, spec, err := r.v2ServiceForm()
	if err != nil {
		return err
	}
	err = r.v2Commit(registry.ServiceCreate{Key: key, Spec: spec})
	if errors.Is(err, registry.ErrServiceExists) {
		return v2Error(http.StatusBadRequest, codeServiceExists, "specified service "+key.Grouped+" already exists!")
	}
	return err
}

// v2UpdateService is PUT: what is left out is reset.
func (s *Server) v2UpdateService(r *request) error {
	key, spec, err := r.v2ServiceForm()
	if err != nil {
		return err
	}
	return v2NoService(key, r.v2Commit(registry.ServiceUpdate{Key: key, Spec: spec}))
}

func (s *Server) v2DeleteService(r *request) error {
	key, err := r.v2Service(v2Unbound("serviceName"))
	if err != nil {
		return err
	}
	err = r.v2Commit(registry.ServiceDelete{Key: key})
	if errors.Is(err, registry.ErrServiceNotEmpty) {
		return v2Error(http.StatusBadRequest, codeServiceDelete,
			"Service "+key.Grouped+" is not empty, can't be delete. Please unregister instance first")
	}
	return v2NoService(key, err)
}

// v2NoService gives an unknown service its text.
func v2NoService(key registry.ServiceKey, err error) error {
	if errors.Is(err, registry.ErrServiceNotFound) {
		return v2Error(http.StatusBadRequest, codeServiceNotExist, "service "+key.Grouped+" not found!")
	}
	return err
}

// v2GetService is GET /service. Nacos 2 gives a service one kind; here it is ephemeral
// unless it was made by hand and holds no ephemeral instance.
func (s *Server) v2GetService(r *request) error {
	key, err := r.v2Service(v2Unbound("serviceName"))
	if err != nil {
		return err
	}
	service := s.opts.Reader.Service(key)
	if service == nil {
		return v2Error(http.StatusBadRequest, codeServiceNotExist, "service not found, namespace: "+key.Namespace+", serviceName: "+key.Grouped)
	}
	ephemeral := !service.Manual
	for _, in := range service.Instances() {
		ephemeral = ephemeral || in.Ephemeral
	}
	b := appendString(append(r.v2Begin(), `{"namespace":`...), key.Namespace)
	b = appendString(append(b, `,"serviceName":`...), key.Name())
	b = appendString(append(b, `,"groupName":`...), key.Group())
	b = append(b, `,"clusterMap":{`...)
	for i, c := range service.Clusters {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendString(b, c.Name)
		b = appendString(append(b, `:{"clusterName":`...), c.Name)
		b = appendChecker(append(b, `,"healthChecker":`...), c.Checker)
		b = appendMetadata(append(b, `,"metadata":`...), c.Metadata)
		b = append(b, `,"hosts":null}`...)
	}
	b = appendMetadata(append(b, `},"metadata":`...), service.Metadata)
	b = appendFloat(append(b, `,"protectThreshold":`...), service.ProtectThreshold)
	b = appendLaterSelector(append(b, `,"selector":`...), service.Selector)
	b = appendBool(append(b, `,"ephemeral":`...), ephemeral)
	return r.json(append(b, "}}"...))
}

func appendLaterSelector(b []byte, s registry.Selector) []byte {
	if s.Type != registry.SelectorLabel {
		return append(b, `{"type":"none","contextType":"NONE"}`...)
	}
	b = appendString(append(b, `{"type":"label","contextType":"CMDB","expression":`...), s.Expression)
	return append(b, '}')
}

// maxV2Page is the most services that a page of the open API holds.
const maxV2Page = 500

// v2ServiceList is GET /service/list: the names of a group, sorted.
func (s *Server) v2ServiceList(r *request) error {
	pageNo, err := r.v2Number("pageNo", 1)
	if err != nil {
		return err
	}
	pageSize, err := r.v2Number("pageSize", 20)
	if err != nil {
		return err
	}
	filter, err := parseMetadataFilter(r.optional("selector", ""))
	if err != nil {
		return err
	}
	services := matching(s.opts.Reader.Services(r.namespace()), r.optional("groupName", registry.DefaultGroup), filter)
	from, to, err := pageOf(len(services), pageNo, min(pageSize, maxV2Page))
	if err != nil {
		return err
	}
	b := appendInt(append(r.v2Begin(), `{"count":`...), int64(len(services)))
	b = append(b, `,"services":[`...)
	for i, service := range services[from:to] {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendString(b, service.Key.Name())
	}
	return r.json(append(b, "]}}"...))
}

// v2SetHealth is PUT /health, for instances that nothing checks.
func (s *Server) v2SetHealth(r *request) error {
	key, err := r.v2Service(v2Missing("serviceName", "String"))
	if err != nil {
		return err
	}
	address, err := r.v2Address()
	if err != nil {
		return err
	}
	if r.optional("healthy", "") == "" {
		return v2Error(http.StatusBadRequest, codeHealthMissing, "Required parameter 'healthy' type Boolean is not present")
	}
	healthy, err := r.boundFlag("healthy")
	if err != nil {
		return err
	}
	if !s.unchecked(key, address.Cluster) {
		if err := s.catchUp(r); err != nil {
			return err
		}
	}
	if s.opts.Reader.Service(key) == nil {
		return v2NoService(key, registry.ErrServiceNotFound)
	}
	if !s.unchecked(key, address.Cluster) {
		return v2Error(http.StatusBadRequest, codeServer, "health check is still working, service: "+key.Grouped+", cluster: "+address.Cluster)
	}
	err = r.v2Commit(registry.Patch{Key: address.In(key), Healthy: &healthy})
	if errors.Is(err, registry.ErrInstanceNotFound) {
		return r.v2OK()
	}
	return err
}

// v2CatalogInstances is GET /catalog/instances, the one route of the open API whose
// missing parameters are told in a bare text.
func (s *Server) v2CatalogInstances(r *request) error {
	for _, name := range []string{"pageNo", "pageSize"} {
		if r.optional(name, "") == "" {
			return &reply{status: http.StatusBadRequest, text: "Parameter '" + name + "' is missing", bare: true, plain: true}
		}
	}
	pageNo, err := r.v2Number("pageNo", 1)
	if err != nil {
		return err
	}
	pageSize, err := r.v2Number("pageSize", 20)
	if err != nil {
		return err
	}
	service := s.opts.Reader.Service(r.service())
	if service == nil {
		return r.json(append(r.buffer(), `{"count":0}`...))
	}
	kept, err := r.wanted(service.Instances())
	if err != nil {
		return err
	}
	from, to, err := pageOf(len(kept), pageNo, pageSize)
	if err != nil {
		return err
	}
	b := append(r.buffer(), `{"instances":[`...)
	for i, in := range kept[from:to] {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendLaterHost(b, service.Key, in, in.Healthy)
	}
	b = appendInt(append(b, `],"count":`...), int64(len(kept)))
	return r.json(append(b, '}'))
}

// wanted are the instances that healthyOnly and enabledOnly leave.
func (r *request) wanted(all []*registry.Instance) (kept []*registry.Instance, err error) {
	healthyOnly, err := r.v2Flag("healthyOnly", false)
	if err != nil {
		return nil, err
	}
	enabledOnly, err := r.v2Flag("enabledOnly", false)
	if err != nil {
		return nil, err
	}
	for _, in := range all {
		if (in.Healthy || !healthyOnly) && (in.Enabled || !enabledOnly) {
			kept = append(kept, in)
		}
	}
	return kept, nil
}
