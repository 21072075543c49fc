package client

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"net"
	"strconv"
	"strings"
	"time"
)

// Metadata keys with which an instance sets its own pace, as Nacos has them since 1.0. The
// values are whole numbers of milliseconds above 0. The interval must not be above the two
// timeouts (a rule of Nacos 2).
const (
	MetaBeatInterval  = "preserved.heart.beat.interval" // between beats; 5000 when not given
	MetaBeatTimeout   = "preserved.heart.beat.timeout"  // silent for longer: unhealthy; 15000
	MetaDeleteTimeout = "preserved.ip.delete.timeout"   // silent for longer: gone; 30000
)

// Nacos' defaults of the three.
const (
	defaultBeatInterval  = 5 * time.Second
	defaultBeatTimeout   = 15 * time.Second
	defaultDeleteTimeout = 30 * time.Second
)

// ServiceName is a service within the client's namespace. Where a function takes one, Name
// may also be "group@@name" with an empty Group. Servers take names up to 512 bytes of
// letters, digits and @ . : _ -, and groups up to 128.
type ServiceName struct {
	Group string // DefaultGroup when empty
	Name  string
}

// String is "group@@name", the form on the wire, with DefaultGroup for an empty one.
func (n ServiceName) String() string {
	if n.Group == "" && strings.Contains(n.Name, "@@") {
		return n.Name
	}
	return cmp.Or(n.Group, DefaultGroup) + "@@" + n.Name
}

func (n ServiceName) normal() (ServiceName, error) {
	if group, name, found := strings.Cut(n.Name, "@@"); found && n.Group == "" {
		n = ServiceName{group, name}
	}
	def(&n.Group, DefaultGroup)
	if n.Name == "" || strings.Contains(n.Name, "@@") {
		return n, invalid("service", n.Name, "must be a name, or group@@name")
	}
	return n, nil
}

// Key is what identifies an instance within the client's namespace. Empty Group and
// Cluster stand for the defaults; Service may also be "group@@service" with an empty Group.
// Keys that mean the same need not be ==: those of Registrations and of Instance have all
// fields filled in.
type Key struct {
	Group, Service, Cluster string
	IP                      string // or a host name; compared as text
	Port                    int
}

func (k Key) normal() (Key, error) {
	name, err := ServiceName{k.Group, k.Service}.normal()
	if err != nil {
		return k, err
	}
	k.Group, k.Service = name.Group, name.Name
	def(&k.Cluster, DefaultCluster)
	if k.IP == "" {
		return k, invalid("ip", "", "must be given")
	}
	if k.Port < 0 || k.Port > math.MaxUint16 {
		return k, invalid("port", strconv.Itoa(k.Port), "must be from 0 to 65535")
	}
	return k, nil
}

func (k Key) service() ServiceName { return ServiceName{k.Group, k.Service} }

// String is "group@@service/cluster/ip:port", for messages.
func (k Key) String() string {
	def(&k.Cluster, DefaultCluster)
	return k.service().String() + "/" + k.Cluster + "/" + net.JoinHostPort(k.IP, strconv.Itoa(k.Port))
}

// Registration is an instance that this process answers for. Functions that take one keep
// a copy, its Metadata included.
type Registration struct {
	Service string // must be given; or "group@@service" with an empty Group
	Group   string // DefaultGroup when empty
	Cluster string // DefaultCluster when empty
	IP      string // or a host name; must be given, except to ListenAndServe
	Port    int    // from 0 to 65535; 0 is a port like any other, except to ListenAndServe
	// Weight is the share of traffic, up to 10000; servers raise what is below 0.01 to
	// that. 0 stands for 1: for no traffic there is Disabled, which keeps the instance
	// registered and out of lists.
	Weight   float64
	Disabled bool
	// Persistent instances stay until they are deregistered, also after Close; the server
	// probes them, by TCP unless the cluster's settings say otherwise. All others live by
	// their beats. A key cannot change its kind without being deregistered.
	Persistent bool
	// Metadata is for those who discover the instance, 16 KiB at rollcall. Three keys
	// set the pace of beats, see MetaBeatInterval.
	Metadata map[string]string
}

// Key identifies the registration, with empty fields as they are.
func (r Registration) Key() Key {
	return Key{r.Group, r.Service, r.Cluster, r.IP, r.Port}
}

// normal fills defaults, copies the metadata and checks.
func (r Registration) normal() (Registration, error) {
	key, err := r.Key().normal()
	if err != nil {
		return r, err
	}
	r.Group, r.Service, r.Cluster = key.Group, key.Service, key.Cluster
	def(&r.Weight, 1)
	if !(r.Weight > 0 && r.Weight <= 10_000) {
		return r, invalid("weight", fmt.Sprint(r.Weight), "must be from 0.01 to 10000; see Disabled")
	}
	r.Metadata = maps.Clone(r.Metadata)
	interval, err := r.millis(MetaBeatInterval, defaultBeatInterval)
	if err != nil {
		return r, err
	}
	for _, limit := range []struct {
		key string
		def time.Duration
	}{{MetaBeatTimeout, defaultBeatTimeout}, {MetaDeleteTimeout, defaultDeleteTimeout}} {
		timeout, err := r.millis(limit.key, limit.def)
		if err != nil {
			return r, err
		}
		if interval > timeout {
			return r, invalid(MetaBeatInterval, interval.String(), "must not be above "+limit.key+", "+timeout.String())
		}
	}
	return r, nil
}

// millis is a duration of the metadata.
func (r Registration) millis(key string, fallback time.Duration) (time.Duration, error) {
	text, given := r.Metadata[key]
	if !given {
		return fallback, nil
	}
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil || n <= 0 {
		return 0, invalid(key, text, "must be a number of milliseconds above 0")
	}
	return time.Duration(n) * time.Millisecond, nil
}

func (r Registration) interval() time.Duration {
	d, _ := r.millis(MetaBeatInterval, defaultBeatInterval) // checked before
	return d
}

func (r Registration) deleteTimeout() time.Duration {
	d, _ := r.millis(MetaDeleteTimeout, defaultDeleteTimeout) // checked before
	return d
}
