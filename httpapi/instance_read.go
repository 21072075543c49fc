package httpapi

import (
	"strconv"

	"github.com/rollcall-io/rollcall/registry"
)

// detail is GET /instance. It shows the real health, whatever the protect rule says.
func (s *Server) detail(r *request) error {
	key, err := r.requiredService()
	if err != nil {
		return err
	}
	cluster := r.optional("clusterName", registry.DefaultCluster)
	address, err := r.address(cluster)
	if err != nil {
		return err
	}
	service := s.opts.Reader.Service(key)
	if service == nil {
		return failed("no service " + key.Grouped + " found!")
	}
	in := service.Instance(address)
	if in == nil {
		if hasCluster(service, cluster) {
			return failed("no matched ip found!")
		}
		return failed("no ips found for cluster " + shorten(cluster) + " in service " + key.Grouped)
	}
	return r.json(appendDetail(r.buffer(), key, in))
}

func hasCluster(s *registry.Service, cluster string) bool {
	for _, in := range s.Instances() {
		if in.Cluster == cluster {
			return true
		}
	}
	return false
}

func appendDetail(b []byte, key registry.ServiceKey, in *registry.Instance) []byte {
	b = appendString(append(b, `{"service":`...), key.Grouped)
	b = appendString(append(b, `,"ip":`...), in.IP)
	b = appendInt(append(b, `,"port":`...), int64(in.Port))
	b = appendString(append(b, `,"clusterName":`...), in.Cluster)
	b = appendDouble(append(b, `,"weight":`...), in.Weight)
	b = strconv.AppendBool(append(b, `,"healthy":`...), in.Healthy)
	b = appendString(append(b, `,"instanceId":`...), in.ID(key))
	b = appendMetadata(append(b, `,"metadata":`...), in.Metadata)
	return append(b, '}')
}

// statuses is GET /instance/statuses: every instance of a service with its real health.
// key is `[namespace##]group@@name`, unlike everywhere else.
func (s *Server) statuses(r *request) error {
	text, err := r.bound("key")
	if err != nil {
		return err
	}
	key := statusKey(text)
	if err := checkGrouped(key.Grouped); err != nil {
		return err
	}
	service := s.opts.Reader.Service(key)
	if service == nil {
		return failed("service: " + shorten(key.Grouped) + " not found.")
	}
	b := appendStatuses(append(r.buffer(), `{"ips":[`...), service)
	return r.json(append(b, "]}"...))
}
