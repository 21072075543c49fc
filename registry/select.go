package registry

import "slices"

// Query says which instances of a service a client wants.
type Query struct {
	// Clusters to look in; none means all. Unknown names are skipped.
	Clusters []string
	// HealthyOnly leaves the unhealthy out.
	HealthyOnly bool
}

// Selected is one instance of an answer with the health that it is shown with.
type Selected struct {
	*Instance
	// Healthy is the health shown: the real one, or true under the protect rule.
	Healthy bool
}

// Selection is the answer to a Query.
type Selection struct {
	// Found is the number of instances in the clusters asked for, disabled ones and
	// unhealthy ones included: 0 makes a list answer take its "no instance" form.
	Found int
	// Protected tells whether the protect rule showed unhealthy instances as healthy.
	Protected bool
	// Hosts are what is shown, unhealthy ones first, then in the order of addresses.
	Hosts []Selected
}

// Select applies the rules of an instance list (Nacos 1.4.7, InstanceController.doSrvIpxt):
// of the clusters' instances, disabled ones counted, if the healthy share is at most the
// service's protect threshold, all are shown as healthy (with the default threshold of
// 0: when none is healthy). Then healthyOnly drops the unhealthy ones, and disabled
// ones are left out last. The ratio is taken in 32-bit floats, as there.
func Select(s *Service, q Query) Selection {
	var sel Selection
	healthy := 0
	for _, in := range s.instances {
		if !q.wants(in) {
			continue
		}
		sel.Found++
		if in.Healthy {
			healthy++
		}
	}
	if sel.Found == 0 {
		return sel
	}
	protect := float32(healthy)/float32(sel.Found) <= float32(s.ProtectThreshold)
	sel.Protected = protect && healthy < sel.Found
	sel.Hosts = make([]Selected, 0, sel.Found)
	if !protect && !q.HealthyOnly {
		for _, in := range s.instances {
			if q.wants(in) && !in.Healthy && in.Enabled {
				sel.Hosts = append(sel.Hosts, Selected{in, false})
			}
		}
	}
	for _, in := range s.instances {
		if q.wants(in) && (in.Healthy || protect) && in.Enabled {
			sel.Hosts = append(sel.Hosts, Selected{in, true})
		}
	}
	return sel
}

func (q Query) wants(in *Instance) bool {
	return len(q.Clusters) == 0 || slices.Contains(q.Clusters, in.Cluster)
}

// SelectLater applies the rules of Nacos 2.x (2.5.1, ServiceUtil): disabled instances are
// left out and healthyOnly drops the unhealthy ones before the share of healthy ones is
// taken, and only a service that was made or changed by hand has a protect threshold.
func SelectLater(s *Service, q Query) Selection {
	var sel Selection
	healthy := 0
	for _, in := range s.instances {
		if !q.wants(in) {
			continue
		}
		sel.Found++
		if !in.Enabled || q.HealthyOnly && !in.Healthy {
			continue
		}
		if in.Healthy {
			healthy++
		}
		sel.Hosts = append(sel.Hosts, Selected{in, in.Healthy})
	}
	n := len(sel.Hosts)
	if s.Manual && healthy < n && float32(healthy)/float32(n) <= float32(s.ProtectThreshold) {
		sel.Protected = true
		for i := range sel.Hosts {
			sel.Hosts[i].Healthy = true
		}
	}
	return sel
}
