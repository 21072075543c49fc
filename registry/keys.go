package registry

import (
	"cmp"
	"strconv"
	"strings"
)

// Defaults of names that a request may leave out, as in Nacos.
const (
	DefaultNamespace = "public"
	DefaultGroup     = "DEFAULT_GROUP"
	DefaultCluster   = "DEFAULT"

	groupSeparator = "@@"
)

// ServiceKey names a service: the two levels of the double map.
// Grouped is the text `group@@name`, kept whole because Nacos keeps it whole
// (a third part, as in `a@@b@@c`, is stored and never shown).
type ServiceKey struct {
	Namespace string
	Grouped   string
}

// NewServiceKey joins group and name. A name that already holds `@@` is taken as it
// is and group is ignored, as the Nacos 1.x server does.
func NewServiceKey(namespace, group, name string) ServiceKey {
	if namespace == "" {
		namespace = DefaultNamespace
	}
	if strings.Contains(name, groupSeparator) {
		return ServiceKey{namespace, name}
	}
	if group == "" {
		group = DefaultGroup
	}
	return ServiceKey{namespace, group + groupSeparator + name}
}

// Group is the part of Grouped before the first `@@`.
func (k ServiceKey) Group() string {
	group, _, _ := strings.Cut(k.Grouped, groupSeparator)
	return group
}

// Name is the second part of Grouped: what old clients call the service.
func (k ServiceKey) Name() string {
	_, rest, found := strings.Cut(k.Grouped, groupSeparator)
	if !found {
		return k.Grouped
	}
	name, _, _ := strings.Cut(rest, groupSeparator)
	return name
}

// String is `namespace/group@@name`, for logs and errors.
func (k ServiceKey) String() string { return k.Namespace + "/" + k.Grouped }

// Compare orders keys by namespace, then by grouped name, bytewise.
func (k ServiceKey) Compare(o ServiceKey) int {
	if c := strings.Compare(k.Namespace, o.Namespace); c != 0 {
		return c
	}
	return strings.Compare(k.Grouped, o.Grouped)
}

// InstanceKey identifies an instance in the whole registry. Whether it is ephemeral
// is an attribute, not part of the key: one key has one kind.
type InstanceKey struct {
	Service ServiceKey
	Cluster string
	IP      string
	Port    uint16
}

// String is `namespace/group@@name ip:port cluster`, for logs and errors.
func (k InstanceKey) String() string {
	return k.Service.String() + " " + k.IP + ":" + strconv.Itoa(int(k.Port)) + " " + k.Cluster
}

// Address is the part of an InstanceKey inside its service.
type Address struct {
	Cluster string
	IP      string
	Port    uint16
}

// Compare orders addresses by cluster, ip and port, bytewise: the order in which a
// service keeps its instances.
func (a Address) Compare(o Address) int {
	if c := strings.Compare(a.Cluster, o.Cluster); c != 0 {
		return c
	}
	if c := strings.Compare(a.IP, o.IP); c != 0 {
		return c
	}
	return cmp.Compare(a.Port, o.Port)
}

// Address is the key without its service.
func (k InstanceKey) Address() Address { return Address{k.Cluster, k.IP, k.Port} }

// In names the address inside a service.
func (a Address) In(service ServiceKey) InstanceKey {
	return InstanceKey{service, a.Cluster, a.IP, a.Port}
}

// DatumKey is Nacos' name of an instance inside a list, `ip:port:unknown:cluster`,
// without the port when it is 0 (Nacos 1.4.7, Instance.getDatumKey).
func (a Address) DatumKey() string {
	if a.Port == 0 {
		return a.IP + ":unknown:" + a.Cluster
	}
	return a.IP + ":" + strconv.Itoa(int(a.Port)) + ":unknown:" + a.Cluster
}

// Position is the place of a command in the log: Raft index, then number of the
// command in its entry. Positions order all events of the registry.
type Position struct {
	Index uint64
	Seq   uint32
}

// IsZero tells whether the position names no command.
func (p Position) IsZero() bool { return p == Position{} }

// Compare orders positions by index, then by number in the entry.
func (p Position) Compare(o Position) int {
	if c := cmp.Compare(p.Index, o.Index); c != 0 {
		return c
	}
	return cmp.Compare(p.Seq, o.Seq)
}
