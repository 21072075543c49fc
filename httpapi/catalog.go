package httpapi

import (
	"cmp"
	"net/http"
	"strconv"

	"github.com/rollcall-io/rollcall/registry"
)

var catalogRoutes = []route{
	{http.MethodGet, nsPrefix + "/catalog/service", reads, (*Server).catalogService},
	{http.MethodGet, nsPrefix + "/catalog/services", scans, (*Server).catalogServices},
}

// catalogService is GET /catalog/service: what Nacos' console shows of a service.
func (s *Server) catalogService(r *request) error {
	key, err := r.requiredServiceUnchecked()
	if err != nil {
		return err
	}
	service := s.opts.Reader.Service(key)
	if service == nil {
		return failed("service " + shorten(key.Grouped) + " is not found!")
	}
	b := appendString(append(r.buffer(), `{"service":{"name":`...), key.Name())
	b = appendFloat(append(b, `,"protectThreshold":`...), service.ProtectThreshold)
	b = appendString(append(b, `,"groupName":`...), key.Group())
	b = appendSelector(append(b, `,"selector":`...), service.Selector)
	b = appendMetadata(append(b, `,"metadata":`...), service.Metadata)
	b = append(b, `},"clusters":[`...)
	for i, c := range service.Clusters {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendCatalogCluster(b, service, c)
	}
	return r.json(append(b, "]}"...))
}

// appendCatalogCluster appends a cluster with the two ports that follow its check port
// and the two that Nacos never changes.
func appendCatalogCluster(b []byte, service *registry.Service, c registry.Cluster) []byte {
	b = appendString(append(b, `{"serviceName":`...), service.Key.Grouped)
	b = appendString(append(b, `,"name":`...), c.Name)
	b = appendChecker(append(b, `,"healthChecker":`...), c.Checker)
	b = strconv.AppendBool(append(b, `,"defaultPort":80,"defaultCheckPort":80,"useIPPort4Check":`...), c.UseInstancePort)
	b = appendMetadata(append(b, `,"metadata":`...), c.Metadata)
	b = appendInt(append(b, `,"sitegroup":"","defCkport":`...), int64(c.CheckPort))
	b = strconv.AppendBool(append(b, `,"empty":`...), !hasCluster(service, c.Name))
	b = appendInt(append(b, `,"defIPPort":`...), int64(c.CheckPort))
	return append(b, '}')
}

// catalogServices is GET /catalog/services: a page of services with their numbers, or
// with their instances.
func (s *Server) catalogServices(r *request) error {
	pageNo, pageSize, err := r.page()
	if err != nil {
		return err
	}
	withInstances, err := r.boundFlag("withInstances")
	if err != nil {
		return err
	}
	services, err := s.catalogMatches(r)
	if err != nil {
		return err
	}
	if withInstances {
		pageNo++ // counted from 0 here
	}
	total := len(services)
	if pageSize < total {
		from, to, err := pageOf(total, pageNo, pageSize)
		if err != nil {
			return err
		}
		services = services[from:to]
	}
	if withInstances {
		return r.json(appendWithInstances(r.buffer(), services))
	}
	if len(services) == 0 {
		total = 0
	}
	return r.json(appendServiceRows(r.buffer(), services, total))
}

// catalogMatches are the services of the namespace that pass all filters of the request.
func (s *Server) catalogMatches(r *request) ([]*registry.Service, error) {
	name, err := r.namePattern("serviceNameParam")
	if err != nil {
		return nil, err
	}
	group, err := r.namePattern("groupNameParam")
	if err != nil {
		return nil, err
	}
	hasIPCount, err := r.boundFlag("hasIpCount")
	if err != nil {
		return nil, err
	}
	instance := r.optional("instance", "")
	var kept []*registry.Service
	for _, service := range s.opts.Reader.Services(r.namespace()) {
		if !name.matches(service.Key.Name()) || !group.matches(service.Key.Group()) ||
			hasIPCount && service.Len() == 0 || instance != "" && !hasInstance(service, instance) {
			continue
		}
		kept = append(kept, service)
	}
	return kept, cmp.Or(name.err(), group.err())
}

// hasInstance tells whether the service has an instance with the ip, or `ip:port`.
func hasInstance(service *registry.Service, address string) bool {
	for _, in := range service.Instances() {
		if in.IP == address || in.IP+":"+strconv.Itoa(int(in.Port)) == address {
			return true
		}
	}
	return false
}

func appendServiceRows(b []byte, services []*registry.Service, total int) []byte {
	b = append(b, `{"serviceList":[`...)
	for i, service := range services {
		if i > 0 {
			b = append(b, ',')
		}
		healthy := 0
		for _, in := range service.Instances() {
			if in.Healthy {
				healthy++
			}
		}
		protected := service.Len() > 0 && float32(healthy)/float32(service.Len()) <= float32(service.ProtectThreshold)
		b = appendString(append(b, `{"name":`...), service.Key.Name())
		b = appendString(append(b, `,"groupName":`...), service.Key.Group())
		b = appendInt(append(b, `,"clusterCount":`...), int64(len(service.Clusters)))
		b = appendInt(append(b, `,"ipCount":`...), int64(service.Len()))
		b = appendInt(append(b, `,"healthyInstanceCount":`...), int64(healthy))
		b = strconv.AppendBool(append(b, `,"triggerFlag":"`...), protected)
		b = append(b, `"}`...)
	}
	b = appendInt(append(b, `],"count":`...), int64(total))
	return append(b, '}')
}

func appendWithInstances(b []byte, services []*registry.Service) []byte {
	b = append(b, '[')
	for i, service := range services {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendString(append(b, `{"serviceName":`...), service.Key.Name())
		b = appendString(append(b, `,"groupName":`...), service.Key.Group())
		b = append(b, `,"clusterMap":{`...)
		for j, c := range service.Clusters {
			if j > 0 {
				b = append(b, ',')
			}
			b = append(appendString(b, c.Name), `:{"hosts":[`...)
			b = append(appendClusterHosts(b, service, c.Name), "]}"...)
		}
		b = appendMetadata(append(b, `},"metadata":`...), service.Metadata)
		b = append(b, '}')
	}
	return append(b, ']')
}

func appendClusterHosts(b []byte, service *registry.Service, cluster string) []byte {
	first := true
	for _, in := range service.Instances() {
		if in.Cluster != cluster {
			continue
		}
		if !first {
			b = append(b, ',')
		}
		first = false
		b = strconv.AppendBool(append(b, `{"valid":`...), in.Healthy)
		b = appendMetadata(append(b, `,"metadata":`...), in.Metadata)
		b = appendInt(append(b, `,"port":`...), int64(in.Port))
		b = appendString(append(b, `,"ip":`...), in.IP)
		b = appendDouble(append(b, `,"weight":`...), in.Weight)
		b = strconv.AppendBool(append(b, `,"enabled":`...), in.Enabled)
		b = append(b, '}')
	}
	return b
}
