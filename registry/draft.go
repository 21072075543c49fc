package registry

import (
	"slices"
	"strings"
)

// Draft is a service being edited: the new instance list is built beside the live
// one, which its readers keep, and swapped in by State.Publish. A Draft copies the
// list once, at the first change, however many changes follow. It is not safe for
// concurrent use.
type Draft struct {
	next   *Service
	shared bool // next.instances still belongs to the published service
}

// Edit starts a draft of a published service.
func Edit(s *Service) *Draft {
	next := *s
	return &Draft{next: &next, shared: true}
}

// NewDraft starts a service that does not exist yet, made empty at entry time now.
func NewDraft(key ServiceKey, now int64) *Draft {
	return &Draft{next: &Service{Key: key, ServiceSpec: ServiceSpec{Selector: Selector{Type: SelectorNone}}, EmptySince: now}}
}

// Service is the draft's present content. It must not be published or kept while the
// draft is still edited.
func (d *Draft) Service() *Service { return d.next }

// Put adds an instance or replaces the one at its address, which is returned, else
// nil. The cluster's settings are created when missing.
func (d *Draft) Put(in *Instance) (old *Instance) {
	d.own()
	i, found := d.next.search(in.Address)
	if found {
		old = d.next.instances[i]
		d.next.instances[i] = in
		return old
	}
	d.next.instances = slices.Insert(d.next.instances, i, in)
	d.next.EmptySince = 0
	if _, known := d.next.Cluster(in.Cluster); !known {
		d.PutCluster(NewCluster(in.Cluster))
	}
	return nil
}

// Remove takes the instance at an address out of the list and returns it, or nil when
// there was none. The cluster stays. now is the entry time, kept as EmptySince when
// the last instance left.
func (d *Draft) Remove(a Address, now int64) (old *Instance) {
	i, found := d.next.search(a)
	if !found {
		return nil
	}
	d.own()
	old = d.next.instances[i]
	d.next.instances = slices.Delete(d.next.instances, i, i+1)
	if len(d.next.instances) == 0 {
		d.next.EmptySince = now
	}
	return old
}

// PutCluster adds or replaces a cluster's settings. Instances are untouched.
func (d *Draft) PutCluster(c Cluster) {
	i, found := slices.BinarySearchFunc(d.next.Clusters, c.Name, func(c Cluster, n string) int { return strings.Compare(c.Name, n) })
	clusters := slices.Clone(d.next.Clusters)
	if found {
		clusters[i] = c
	} else {
		clusters = slices.Insert(clusters, i, c)
	}
	d.next.Clusters = clusters
}

// SetSpec replaces threshold, metadata and selector.
func (d *Draft) SetSpec(spec ServiceSpec) { d.next.ServiceSpec = spec }

// SetManual marks the service as made by hand.
func (d *Draft) SetManual() { d.next.Manual = true }

// Touch records a visible change made by the entry at index, stamped now: it sets the
// revision and raises the change stamp to max(now, previous+1).
func (d *Draft) Touch(index uint64, now int64) {
	d.next.Revision = index
	d.next.Stamp = max(now, d.next.Stamp+1)
}

// FreeSnowflake is the smallest snowflake number plus one that no instance of the
// service has: the value for Instance.SnowflakeID. Ids are per service.
func (d *Draft) FreeSnowflake() uint32 {
	used := make([]bool, len(d.next.instances)+2)
	for _, in := range d.next.instances {
		if int(in.SnowflakeID) < len(used) {
			used[in.SnowflakeID] = true
		}
	}
	for n := uint32(1); ; n++ {
		if !used[n] {
			return n
		}
	}
}

// WantsSnowflake tells whether a spec asks for a snowflake id.
func (s Spec) WantsSnowflake() bool { return wantsSnowflake(s.Metadata) }

// own copies the list before its first change, with room for a few more.
func (d *Draft) own() {
	if !d.shared {
		return
	}
	d.shared = false
	instances := make([]*Instance, len(d.next.instances), len(d.next.instances)+4)
	copy(instances, d.next.instances)
	d.next.instances = instances
}
