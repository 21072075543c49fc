package httpapi

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"

	"github.com/rollcall-io/rollcall/registry"
)

// appendUnknownList is the list of a service that does not exist: four keys only.
func appendUnknownList(b []byte, key registry.ServiceKey, v listView) []byte {
	b = appendString(append(b, `{"name":`...), key.Grouped)
	b = appendString(append(b, `,"clusters":`...), v.clusters)
	b = appendInt(append(b, `,"cacheMillis":`...), int64(v.cacheMillis))
	return append(b, `,"hosts":[]}`...)
}

// appendList is the list of a service that exists, its keys in the order in which Nacos
// 1.4.7 emits them: with nothing in the clusters, `hosts` stands near the end.
func appendList(b []byte, s *registry.Service, v listView, checksum string) []byte {
	selection := registry.Select(s, v.query())
	b = append(b, '{')
	if selection.Found > 0 {
		b = appendHosts(b, s, v, selection.Hosts)
		b = append(b, ',')
	}
	b = appendString(append(b, `"dom":`...), v.serviceName(s.Key))
	b = appendString(append(b, `,"name":`...), s.Key.Grouped)
	b = appendInt(append(b, `,"cacheMillis":`...), int64(v.cacheMillis))
	b = appendInt(append(b, `,"lastRefTime":`...), s.Stamp)
	b = append(append(b, `,"checksum":"`...), checksum...)
	b = appendString(append(b, `","useSpecifiedURL":false,"clusters":`...), v.clusters)
	b = appendString(append(b, `,"env":`...), v.env)
	if selection.Found == 0 {
		b = append(b, `,"hosts":[]`...)
	}
	b = appendMetadata(append(b, `,"metadata":`...), s.Metadata)
	return append(b, '}')
}

// serviceName is how the client calls the service.
func (v listView) serviceName(key registry.ServiceKey) string {
	if v.grouped {
		return key.Grouped
	}
	return key.Name()
}

func appendHosts(b []byte, s *registry.Service, v listView, hosts []registry.Selected) []byte {
	name := v.serviceName(s.Key)
	b = append(b, `"hosts":[`...)
	for i, in := range hosts {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendHost(b, s.Key, in.Instance, in.Healthy, true, name)
	}
	return append(b, ']')
}

// appendHost appends one instance as lists show it: with the health and the name of its
// service that the list has for it.
func appendHost(b []byte, key registry.ServiceKey, in *registry.Instance, healthy, enabled bool, serviceName string) []byte {
	b = appendString(append(b, `{"ip":`...), in.IP)
	b = appendInt(append(b, `,"port":`...), int64(in.Port))
	b = strconv.AppendBool(append(b, `,"valid":`...), healthy)
	b = strconv.AppendBool(append(b, `,"healthy":`...), healthy)
	b = appendInstanceID(append(b, `,"marked":false,"instanceId":`...), key, in)
	b = appendMetadata(append(b, `,"metadata":`...), in.Metadata)
	b = strconv.AppendBool(append(b, `,"enabled":`...), enabled)
	b = appendDouble(append(b, `,"weight":`...), in.Weight)
	b = appendString(append(b, `,"clusterName":`...), in.Cluster)
	b = appendString(append(b, `,"serviceName":`...), serviceName)
	b = strconv.AppendBool(append(b, `,"ephemeral":`...), in.Ephemeral)
	return append(b, '}')
}

func appendInstanceID(b []byte, key registry.ServiceKey, in *registry.Instance) []byte {
	return appendString(b, in.ID(key))
}

// checksumOf is a digest over everything of a service that a client can see: 32
// hexadecimal digits, the same on every node.
func checksumOf(s *registry.Service) string {
	b := make([]byte, 0, 128+192*s.Len())
	b = appendString(b, s.Key.Grouped)
	b = appendFloat(b, s.ProtectThreshold)
	b = appendMetadata(b, s.Metadata)
	b = appendString(b, s.Selector.Type)
	b = appendString(b, s.Selector.Expression)
	for _, in := range s.Instances() {
		b = appendString(b, in.IP)
		b = appendInt(b, int64(in.Port))
		b = appendString(b, in.Cluster)
		b = appendString(b, in.App)
		b = appendDouble(b, in.Weight)
		b = strconv.AppendBool(b, in.Healthy)
		b = strconv.AppendBool(b, in.Enabled)
		b = strconv.AppendBool(b, in.Ephemeral)
		b = appendMetadata(b, in.Metadata)
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:16])
}
