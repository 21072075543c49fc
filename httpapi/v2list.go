package httpapi

import (
	"strconv"
	"strings"

	"github.com/rollcall-io/rollcall/registry"
)

// v2Detail is GET /instance. The open API gives no instance an id.
func (s *Server) v2Detail(r *request) error {
	key, err := r.v2Service(v2Unbound("serviceName"))
	if err != nil {
		return err
	}
	for _, name := range []string{"ip", "port"} {
		if r.optional(name, "") == "" {
			return v2Unbound(name)
		}
	}
	address, err := r.v2Address()
	if err != nil {
		return err
	}
	in := s.opts.Reader.Instance(address.In(key))
	if in == nil {
		return s.v2NoInstance(key, address.Cluster)
	}
	b := appendString(append(r.v2Begin(), `{"serviceName":`...), key.Grouped)
	b = appendString(append(b, `,"ip":`...), in.IP)
	b = appendInt(append(b, `,"port":`...), int64(in.Port))
	b = appendString(append(b, `,"clusterName":`...), in.Cluster)
	b = appendDouble(append(b, `,"weight":`...), in.Weight)
	b = appendBool(append(b, `,"healthy":`...), in.Healthy)
	b = appendMetadata(append(b, `,"instanceId":null,"metadata":`...), in.Metadata)
	return r.json(append(b, "}}"...))
}

// v2List is GET /instance/list, with the same object for an unknown service.
func (s *Server) v2List(r *request) error {
	key, err := r.v2Service(v2Unbound("serviceName"))
	if err != nil {
		return err
	}
	healthyOnly, err := r.v2Flag("healthyOnly", false)
	if err != nil {
		return err
	}
	view := listView{clusters: r.optional("clusterName", ""), healthyOnly: healthyOnly}
	var selection registry.Selection
	var stamp int64
	if service := s.opts.Reader.Service(key); service != nil {
		selection, stamp = registry.SelectLater(service, view.query()), service.Stamp
	}
	b := appendString(append(r.v2Begin(), `{"name":`...), key.Grouped)
	b = appendString(append(b, `,"groupName":`...), key.Group())
	b = appendString(append(b, `,"clusters":`...), view.clusters)
	b = appendInt(append(b, `,"cacheMillis":`...), int64(s.opts.Reader.Switches().DefaultPushCacheMillis))
	b = append(b, `,"hosts":[`...)
	for i, host := range selection.Hosts {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendLaterHost(b, key, host.Instance, host.Healthy)
	}
	b = appendInt(append(b, `],"lastRefTime":`...), stamp)
	b = appendBool(append(b, `,"checksum":"","allIPs":false,"reachProtectionThreshold":`...), selection.Protected)
	return r.json(append(b, `,"valid":true}}`...))
}

// appendLaterHost appends an instance as Nacos 2 shows it.
func appendLaterHost(b []byte, key registry.ServiceKey, in *registry.Instance, healthy bool) []byte {
	b = appendString(append(b, `{"ip":`...), in.IP)
	b = appendInt(append(b, `,"port":`...), int64(in.Port))
	b = appendDouble(append(b, `,"weight":`...), in.Weight)
	b = appendBool(append(b, `,"healthy":`...), healthy)
	b = appendBool(append(b, `,"enabled":`...), in.Enabled)
	b = appendBool(append(b, `,"ephemeral":`...), in.Ephemeral)
	b = appendString(append(b, `,"clusterName":`...), in.Cluster)
	b = appendString(append(b, `,"serviceName":`...), key.Grouped)
	b = appendMetadata(append(b, `,"metadata":`...), in.Metadata)
	return append(appendTimeouts(b, in), '}')
}

// v2Statuses is GET /instance/statuses/{key}: no envelope, and no error for an unknown
// service.
func (s *Server) v2Statuses(r *request) error {
	key := statusKey(r.gin.Param("key"))
	if err := checkGrouped(key.Grouped); err != nil {
		return err
	}
	b := append(r.buffer(), `{"ips":[`...)
	if service := s.opts.Reader.Service(key); service != nil {
		b = appendStatuses(b, service)
	}
	return r.json(append(b, "]}"...))
}

// statusKey reads `[namespace##]group@@name`.
func statusKey(text string) registry.ServiceKey {
	if namespace, grouped, found := strings.Cut(text, "##"); found {
		return registry.ServiceKey{Namespace: namespace, Grouped: grouped}
	}
	return registry.ServiceKey{Namespace: registry.DefaultNamespace, Grouped: text}
}

func appendStatuses(b []byte, service *registry.Service) []byte {
	for i, in := range service.Instances() {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendString(b, in.IP+":"+strconv.Itoa(int(in.Port))+"_"+strconv.FormatBool(in.Healthy))
	}
	return b
}
