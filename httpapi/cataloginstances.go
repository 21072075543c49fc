package httpapi

import (
	"net/http"
	"strconv"

	"github.com/rollcall-io/rollcall/registry"
)

var catalogInstanceRoutes = []route{
	{http.MethodGet, nsPrefix + "/catalog/instances", reads, (*Server).catalogInstances},
	{http.MethodGet, nsPrefix + "/catalog/rt/service", reads, (*Server).catalogTimes},
}

// catalogInstances is GET /catalog/instances: a page of one cluster's instances with all
// that is known of them, disabled ones included and with their real health.
func (s *Server) catalogInstances(r *request) error {
	key, err := r.boundService()
	if err != nil {
		return err
	}
	cluster, err := r.bound("clusterName")
	if err != nil {
		return err
	}
	pageNo, err := r.boundInteger("pageNo")
	if err != nil {
		return err
	}
	pageSize, err := r.boundInteger("pageSize")
	if err != nil {
		return err
	}
	service := s.opts.Reader.Service(key)
	if service == nil {
		return failed("service " + shorten(key.Grouped) + " is not found!")
	}
	if _, found := service.Cluster(cluster); !found {
		return failed("cluster " + shorten(cluster) + " is not found!")
	}
	members := service.InCluster(cluster)
	from, to, err := pageOf(len(members), pageNo, pageSize)
	if err != nil {
		return err
	}
	b := append(r.buffer(), `{"list":[`...)
	for i, in := range members[from:to] {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendCatalogInstance(b, key, in)
	}
	b = appendInt(append(b, `],"count":`...), int64(len(members)))
	return r.json(append(b, '}'))
}

// boundInteger is a number that Nacos binds by annotation. It answers 500 to a text
// there; here the text is named.
func (r *request) boundInteger(name string) (int, error) {
	text, found := r.params.get(name)
	if !found {
		return 0, failed("Required request parameter '" + name + "' for method parameter type int is not present")
	}
	n, err := integer(javaTrim(text))
	if err != nil {
		return 0, registry.Invalid(name, text, "must be a number")
	}
	return n, nil
}

// appendCatalogInstance appends an instance as Nacos' console reads it. When it last beat
// is known to the leader alone and in no answer: lastBeat is 0.
func appendCatalogInstance(b []byte, key registry.ServiceKey, in *registry.Instance) []byte {
	b = appendString(append(b, `{"instanceId":`...), in.ID(key))
	b = appendString(append(b, `,"ip":`...), in.IP)
	b = appendInt(append(b, `,"port":`...), int64(in.Port))
	b = appendDouble(append(b, `,"weight":`...), in.Weight)
	b = strconv.AppendBool(append(b, `,"healthy":`...), in.Healthy)
	b = strconv.AppendBool(append(b, `,"enabled":`...), in.Enabled)
	b = strconv.AppendBool(append(b, `,"ephemeral":`...), in.Ephemeral)
	b = appendString(append(b, `,"clusterName":`...), in.Cluster)
	b = appendString(append(b, `,"serviceName":`...), key.Grouped)
	b = appendMetadata(append(b, `,"metadata":`...), in.Metadata)
	b = append(b, `,"lastBeat":0,"marked":false`...)
	if in.App != "" {
		b = appendString(append(b, `,"app":`...), in.App)
	}
	return append(appendTimeouts(b, in), '}')
}

// appendTimeouts appends the life of an instance and how its id is made. Nacos leaves the
// generator out when the metadata holds other keys and not that one.
func appendTimeouts(b []byte, in *registry.Instance) []byte {
	b = appendInt(append(b, `,"instanceHeartBeatInterval":`...), int64(in.Timeouts.Interval))
	b = appendInt(append(b, `,"instanceHeartBeatTimeOut":`...), int64(in.Timeouts.Beat))
	b = appendInt(append(b, `,"ipDeleteTimeout":`...), int64(in.Timeouts.Delete))
	if generator, found := in.Metadata.Get(registry.KeyIDGenerator); found {
		b = appendString(append(b, `,"instanceIdGenerator":`...), generator)
	} else if len(in.Metadata) == 0 {
		b = append(b, `,"instanceIdGenerator":"simple"`...)
	}
	return b
}

// catalogTimes is GET /catalog/rt/service: how long probes take, for each cluster. It is
// not measured: the values are those of Nacos before its first probe.
func (s *Server) catalogTimes(r *request) error {
	key, err := r.requiredServiceUnchecked()
	if err != nil {
		return err
	}
	service := s.opts.Reader.Service(key)
	if service == nil {
		return illegal("request service doesn't exist")
	}
	b := append(r.buffer(), `{"clusters":[`...)
	for i, c := range service.Clusters {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendString(append(b, `{"name":`...), c.Name)
		b = append(b, `,"checkRTBest":9223372036854775807,"checkRTWorst":0,"checkRTNormalized":3521}`...)
	}
	return r.json(append(b, "]}"...))
}
