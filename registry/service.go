package registry

import (
	"slices"
	"strings"
)

// Checker types of a cluster's active probe, for persistent instances.
const (
	CheckTCP   = "TCP"
	CheckHTTP  = "HTTP"
	CheckMySQL = "MYSQL"
	CheckNone  = "NONE"
)

// Checker says how the persistent instances of a cluster are probed.
type Checker struct {
	Type string
	// Path, Headers (`name:value|name:value`) and ExpectedCode belong to HTTP.
	Path         string
	Headers      string
	ExpectedCode int
	// User, Password and Command belong to MYSQL.
	User     string
	Password string
	Command  string
}

// Cluster is the settings of a cluster inside a service. Instances name their
// cluster; the list here never decides whether one exists.
type Cluster struct {
	Name    string
	Checker Checker
	// CheckPort is probed when UseInstancePort is false.
	CheckPort       uint16
	UseInstancePort bool
	Metadata        Metadata
}

// NewCluster is a cluster as a registration makes it: TCP probes of the instance's
// own port (Nacos 1.4.7 defaults).
func NewCluster(name string) Cluster {
	return Cluster{Name: name, Checker: Checker{Type: CheckTCP}, CheckPort: 80, UseInstancePort: true}
}

// Selector filters a service's instances by the asking client. Type none lets all through.
type Selector struct {
	Type       string
	Expression string
}

// SelectorNone and SelectorLabel are the selector types that Nacos knows.
const (
	SelectorNone  = "none"
	SelectorLabel = "label"
)

// ServiceSpec is what a creation or update says of a service.
type ServiceSpec struct {
	ProtectThreshold float64
	Metadata         Metadata
	Selector         Selector
}

// Service is one service with its clusters and instances. It is immutable once
// published: change it through a Draft.
type Service struct {
	Key ServiceKey
	ServiceSpec
	// Manual is true for a service made by a creation request: it stays when empty.
	Manual bool
	// Clusters are sorted by name.
	Clusters []Cluster
	// Revision is the Raft index of the last change that a client can see.
	Revision uint64
	// Stamp is the change stamp, lastRefTime on the wire: milliseconds of the
	// proposer's clock at the last visible change, raised to previous+1 when needed,
	// so it never goes back for a service name while the service lives.
	Stamp int64
	// EmptySince is the entry time, in milliseconds, at which the last instance left
	// or the service was made empty; 0 while it has instances.
	EmptySince int64

	// instances are sorted by Address.
	instances []*Instance
}

// Assemble is a service out of its settings and its instances, which it takes over:
// how a snapshot is read. It is nil unless the instances are in strictly ascending order
// of their addresses.
func Assemble(settings Service, instances []*Instance) *Service {
	for i := 1; i < len(instances); i++ {
		if instances[i-1].Address.Compare(instances[i].Address) >= 0 {
			return nil
		}
	}
	settings.instances = instances
	return &settings
}

// Instances are all instances in the order of their addresses. The slice is shared:
// do not modify it.
func (s *Service) Instances() []*Instance { return s.instances }

// Len is the number of instances.
func (s *Service) Len() int { return len(s.instances) }

// Instance is the instance at an address, or nil.
func (s *Service) Instance(a Address) *Instance {
	if i, found := s.search(a); found {
		return s.instances[i]
	}
	return nil
}

// InCluster are the instances of one cluster, in the order of their addresses. The slice
// is shared: do not modify it.
func (s *Service) InCluster(cluster string) []*Instance {
	from, _ := s.search(Address{Cluster: cluster})
	to := from
	for to < len(s.instances) && s.instances[to].Cluster == cluster {
		to++
	}
	return s.instances[from:to:to]
}

// Cluster is the settings of a cluster, and whether the service has it.
func (s *Service) Cluster(name string) (Cluster, bool) {
	i, found := slices.BinarySearchFunc(s.Clusters, name, func(c Cluster, n string) int { return strings.Compare(c.Name, n) })
	if !found {
		return Cluster{}, false
	}
	return s.Clusters[i], true
}

func (s *Service) search(a Address) (int, bool) {
	return slices.BinarySearchFunc(s.instances, a, func(in *Instance, a Address) int { return in.Address.Compare(a) })
}
