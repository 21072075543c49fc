package client

import (
	"cmp"
	"encoding/json"
	"maps"
	"net"
	"slices"
	"strconv"
	"time"
)

// Instance is one that was discovered. It is shared between all who read the service: do
// not change it, nor its Metadata. As long as nothing of it changes, the lists of
// servers have the same pointer for it, so it may be a key of what is kept for it.
type Instance struct {
	Service   ServiceName // with its group
	Cluster   string      // never empty
	IP        string      // or a host name
	Port      int
	Weight    float64           // its share of traffic; 0 for none
	Healthy   bool              // as the server sees it, by beats or probes
	Enabled   bool              // whether it is meant to get traffic
	Ephemeral bool              // lives by beats
	Metadata  map[string]string // never nil in a list

	addr string
	hash uint64
}

// Addr is "ip:port", with brackets round an IPv6 address.
func (i *Instance) Addr() string {
	if i.addr == "" { // not from a list
		return net.JoinHostPort(i.IP, strconv.Itoa(i.Port))
	}
	return i.addr
}

// Key identifies the instance, with all fields filled in.
func (i *Instance) Key() Key {
	return Key{i.Service.Group, i.Service.Name, i.Cluster, i.IP, i.Port}
}

// Usable tells whether the instance may get traffic: healthy, enabled and with a weight
// above 0.
func (i *Instance) Usable() bool { return i.Healthy && i.Enabled && i.Weight > 0 }

func (i *Instance) compare(o *Instance) int {
	return cmp.Or(cmp.Compare(i.Cluster, o.Cluster), cmp.Compare(i.IP, o.IP), cmp.Compare(i.Port, o.Port))
}

func (i *Instance) equal(o *Instance) bool {
	return i.Weight == o.Weight && i.Healthy == o.Healthy && i.Enabled == o.Enabled && i.Ephemeral == o.Ephemeral &&
		maps.Equal(i.Metadata, o.Metadata)
}

// wireList is a list as servers send it and as it is kept on disk.
type wireList struct {
	Name        string     `json:"name"`
	Clusters    string     `json:"clusters"`
	CacheMillis int64      `json:"cacheMillis"`
	LastRefTime int64      `json:"lastRefTime"`
	Index       uint64     `json:"index,omitempty"` // on disk only
	Hosts       []wireHost `json:"hosts"`
}

type wireHost struct {
	IP          string            `json:"ip"`
	Port        int               `json:"port"`
	Weight      float64           `json:"weight"`
	Healthy     bool              `json:"healthy"`
	Enabled     bool              `json:"enabled"`
	Ephemeral   bool              `json:"ephemeral"`
	ClusterName string            `json:"clusterName"`
	Metadata    map[string]string `json:"metadata"`
}

func parseList(b []byte) (wireList, error) {
	var l wireList
	if err := json.Unmarshal(b, &l); err != nil {
		return l, err
	}
	return l, nil
}

// cacheFor is how long the server wants the list to be used before it is asked for again.
func (l wireList) cacheFor() time.Duration {
	return min(max(time.Duration(l.CacheMillis)*time.Millisecond, time.Second), time.Minute)
}

// instances are those of the list, in order and each once.
func (l wireList) instances(name ServiceName) []*Instance {
	all := make([]*Instance, 0, len(l.Hosts))
	for _, h := range l.Hosts {
		i := &Instance{
			Service: name, Cluster: cmp.Or(h.ClusterName, DefaultCluster), IP: h.IP, Port: h.Port, Weight: h.Weight,
			Healthy: h.Healthy, Enabled: h.Enabled, Ephemeral: h.Ephemeral, Metadata: orEmpty(h.Metadata),
		}
		i.addr = net.JoinHostPort(i.IP, strconv.Itoa(i.Port))
		i.hash = hashText(i.Cluster + "/" + i.addr)
		all = append(all, i)
	}
	slices.SortStableFunc(all, (*Instance).compare)
	return slices.CompactFunc(all, func(a, b *Instance) bool { return a.compare(b) == 0 })
}

// listOf is the form on disk.
func listOf(s *Snapshot, clusters string) wireList {
	l := wireList{Name: s.service.String(), Clusters: clusters, LastRefTime: s.stamp, Index: s.index, Hosts: []wireHost{}}
	for _, i := range s.all {
		l.Hosts = append(l.Hosts, wireHost{i.IP, i.Port, i.Weight, i.Healthy, i.Enabled, i.Ephemeral, i.Cluster, i.Metadata})
	}
	return l
}
