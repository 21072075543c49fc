package httpapi

import (
	"strings"

	"github.com/rollcall-io/rollcall/registry"
)

// Texts of Nacos 1.4.7 for a service name that is no `group@@name`.
const (
	badGroupedName = "Param 'serviceName' is illegal, it should be format as 'groupName@@serviceName'"
	emptyGroup     = "Param 'serviceName' is illegal, groupName can't be empty"
)

// service is the key that a request names with namespaceId, groupName and serviceName
// (or dom), without the check of its form.
func (r *request) service() registry.ServiceKey {
	return registry.NewServiceKey(r.namespace(), r.optional("groupName", ""), r.rawServiceName())
}

func (r *request) namespace() string { return r.optional("namespaceId", registry.DefaultNamespace) }

// rawServiceName is the trimmed parameter serviceName or, when that is blank, dom.
func (r *request) rawServiceName() string {
	return r.optional("serviceName", r.optional("dom", ""))
}

// requiredService is the key of a route that needs a well-formed service name.
func (r *request) requiredService() (registry.ServiceKey, error) {
	if r.rawServiceName() == "" {
		if v, _ := r.params.get("serviceName"); v == "" {
			return registry.ServiceKey{}, missing("serviceName")
		}
		return registry.ServiceKey{}, illegal(badGroupedName)
	}
	key := r.service()
	return key, checkGrouped(key.Grouped)
}

// boundService is the key of a route whose serviceName Nacos binds by annotation.
func (r *request) boundService() (registry.ServiceKey, error) {
	if r.rawServiceName() == "" {
		if _, err := r.bound("serviceName"); err != nil {
			return registry.ServiceKey{}, err
		}
	}
	return r.service(), nil
}

// checkGrouped applies NamingUtils.checkServiceNameFormat: Java's split drops empty
// parts at the end, so at least one part after the group must hold something.
func checkGrouped(grouped string) error {
	group, rest, found := strings.Cut(grouped, "@@")
	if !found || strings.Trim(rest, "@") == "" {
		return illegal(badGroupedName)
	}
	if javaTrim(group) == "" {
		return illegal(emptyGroup)
	}
	return nil
}

// checkServiceKey is the check of a service that a request may create: Nacos' text for
// the characters of the name, ours for the limits.
func checkServiceKey(key registry.ServiceKey) error {
	if !allBytes(key.Grouped, "@.:_-") && len(key.Grouped) <= registry.MaxGroup+registry.MaxName {
		return illegal("dom name can only have these characters: 0-9a-zA-Z-._:, current: " + key.Grouped)
	}
	return registry.ValidateServiceKey(key)
}

// checkCluster is the same for a cluster.
func checkCluster(name string) error {
	if !allBytes(name, "-") && len(name) <= registry.MaxCluster {
		return illegal("cluster name can only have these characters: 0-9a-zA-Z-, current: " + name)
	}
	return registry.ValidateCluster(name)
}

// allBytes tells whether s holds ASCII letters, digits and the bytes of also.
func allBytes(s, also string) bool {
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' {
			continue
		}
		if strings.IndexByte(also, c) < 0 {
			return false
		}
	}
	return true
}

// cluster is the cluster that a write names: clusterName, else cluster, else DEFAULT.
// The oldest Java clients (0.1 to 0.4) send cluster as a JSON object with a name.
func (r *request) cluster() string {
	name := r.clusterName()
	if name != "" {
		return name
	}
	name = r.optional("cluster", "")
	if strings.HasPrefix(name, "{") {
		name = clusterOfObject(name)
	}
	if name == "" {
		return registry.DefaultCluster
	}
	return name
}

// clusterName is the parameter clusterName, "" when it is not set. The Python client 1.x
// sends the text `None` for a cluster that was not given, and none in its beats: taken
// at its word, each of its instances would be two.
func (r *request) clusterName() string {
	name := r.optional("clusterName", "")
	if name == "None" && r.agent().kind == agentPython {
		return ""
	}
	return name
}

func clusterOfObject(text string) string {
	name := ""
	if _, ok := scanObject(text, func(key string, v jsonValue) bool {
		if key == "name" {
			name, _ = v.scalar()
		}
		return true
	}); !ok {
		return text
	}
	return javaTrim(name)
}

// address reads ip, port and cluster of a write in the order in which Nacos checks
// them. The values themselves are checked by the caller.
func (r *request) address(cluster string) (a registry.Address, err error) {
	a.Cluster = cluster
	if a.IP, err = r.requiredIP(); err != nil {
		return a, err
	}
	a.Port, err = r.requiredPort()
	return a, err
}

func (r *request) requiredIP() (string, error) {
	ip, err := r.required("ip")
	if err == nil && ip == "" {
		return "", missing("ip")
	}
	return ip, err
}

func (r *request) requiredPort() (uint16, error) {
	text, err := r.required("port")
	if err != nil {
		return 0, err
	}
	return port(text)
}
