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

// Metadata keys, all in milliseconds, with which an instance sets its own pace.
const (
	MetaBeatInterval  = "preserved.heart.beat.interval"
	MetaBeatTimeout   = "preserved.heart.beat.timeout"
	MetaDeleteTimeout = "preserved.ip.delete.timeout"
)

// Nacos' defaults of the three.
const (
	defaultBeatInterval  = 5 * time.Second
	defaultBeatTimeout   = 15 * time.Second
	defaultDeleteTimeout = 30 * time.Second
)

// ServiceName is a service within the client's namespace.
type ServiceName struct {
	Group string // DefaultGroup when empty
	Name  string
}

// String is "group@@name", the form on the wire.
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
// Cluster stand for the defaults.
type Key struct {
	Group, Service, Cluster string
	IP                      string
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

// String is for messages.
func (k Key) String() string {
	return k.service().String() + "/" + k.Cluster + "/" + net.JoinHostPort(k.IP, strconv.Itoa(k.Port))
}

// Registration is an instance that this process answers for.
type Registration struct {
	Service string // or "group@@service"
	Group   string // DefaultGroup when empty
	Cluster string // DefaultCluster when empty
	IP      string // or a host name
	Port    int
	// Weight is the share of traffic, from 0.01 to 10000; 0 stands for 1. Disabled keeps
	// the instance registered and out of lists.
	Weight   float64
	Disabled bool
	// Persistent instances stay until they are deregistered; the server probes them. All
	// others live by their beats.
	Persistent bool
	Metadata   map[string]string
}

// Key identifies the registration.
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
