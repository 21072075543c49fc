package main

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/nacos-group/nacos-sdk-go/clients"
	"github.com/nacos-group/nacos-sdk-go/clients/naming_client"
	"github.com/nacos-group/nacos-sdk-go/common/constant"
	"github.com/nacos-group/nacos-sdk-go/vo"

	"github.com/rollcall-io/rollcall/test/compat/probe"
)

const (
	// soon bounds what must be seen without a client's poll in between.
	soon = 5 * time.Second
	// pollWithin bounds what the client sees by itself: it asks again when its list is
	// older than the cacheMillis that came with it, 10 s when it takes pushes.
	pollWithin = 11 * time.Second
	// unrestPollWithin is two polls: a node that is killed forgets whom it pushes to.
	unrestPollWithin = 25 * time.Second
	// retryWithin bounds a call while leaders are being killed.
	retryWithin = 15 * time.Second
)

// quick makes an instance beat each second, be unhealthy after 3 s and gone after 6 s.
var quick = map[string]string{
	"preserved.heart.beat.interval": "1000",
	"preserved.heart.beat.timeout":  "3000",
	"preserved.ip.delete.timeout":   "6000",
}

// quickInterval is the beat interval of quick.
const quickInterval = time.Second

// suite is the cluster and how to reach it with the client.
type suite struct {
	*probe.World
	retried atomic.Int64 // calls that had to be repeated while leaders were killed
}

// pollWithin bounds what the client sees by itself.
func (s *suite) pollWithin() time.Duration {
	if s.Unrest {
		return unrestPollWithin
	}
	return pollWithin
}

// newClient makes a client that knows the given servers.
func (s *suite) newClient(servers []string, change func(*constant.ClientConfig)) (naming_client.INamingClient, error) {
	dir, err := os.MkdirTemp(".", "client-")
	if err != nil {
		return nil, err
	}
	config := constant.ClientConfig{
		TimeoutMs: 10_000, NotLoadCacheAtStart: true, LogLevel: "error", LogDir: dir, CacheDir: dir,
	}
	if change != nil {
		change(&config)
	}
	var list []constant.ServerConfig
	for _, server := range servers {
		host, port, err := net.SplitHostPort(server)
		if err != nil {
			return nil, err
		}
		number, err := strconv.ParseUint(port, 10, 16)
		if err != nil {
			return nil, err
		}
		list = append(list, *constant.NewServerConfig(host, number))
	}
	return clients.NewNamingClient(vo.NacosClientParam{ClientConfig: &config, ServerConfigs: list})
}

// client makes a client of all nodes with a namespace of its own; empty is the default.
func (s *suite) client(namespace string) (naming_client.INamingClient, error) {
	return s.newClient(s.Servers, func(c *constant.ClientConfig) { c.NamespaceId = namespace })
}

// call makes a call that must succeed at the first try, or, while leaders are being
// killed, when it is repeated for a while as an application would.
func (s *suite) call(what string, do func() (bool, error)) error {
	start := time.Now()
	for {
		done, err := do()
		if err == nil && done {
			return nil
		}
		if !s.Unrest || time.Since(start) > retryWithin {
			return fmt.Errorf("%s: %v, %v after %s", what, done, err, time.Since(start).Round(time.Millisecond))
		}
		s.retried.Add(1)
	}
}

// instance is what most checks register.
func instance(service string, port int, metadata map[string]string) vo.RegisterInstanceParam {
	return vo.RegisterInstanceParam{
		ServiceName: service, Ip: "10.1.0.1", Port: uint64(port), Weight: 1, Enable: true, Healthy: true, Ephemeral: true,
		Metadata: metadata,
	}
}

func (s *suite) register(c naming_client.INamingClient, p vo.RegisterInstanceParam) error {
	return s.call("register", func() (bool, error) { return c.RegisterInstance(p) })
}

func (s *suite) deregister(c naming_client.INamingClient, p vo.RegisterInstanceParam) error {
	return s.call("deregister", func() (bool, error) {
		return c.DeregisterInstance(vo.DeregisterInstanceParam{
			ServiceName: p.ServiceName, GroupName: p.GroupName, Cluster: p.ClusterName, Ip: p.Ip, Port: p.Port, Ephemeral: p.Ephemeral,
		})
	})
}

// stays looks at all nodes for a while and fails as soon as good is false on one.
func (s *suite) stays(d time.Duration, service probe.Service, what string, good func([]probe.Host) bool) error {
	start := time.Now()
	for time.Since(start) < d {
		for _, server := range s.Servers {
			hosts, err := s.List(server, service)
			if err != nil {
				if s.Unrest {
					continue
				}
				return err
			}
			if !good(hosts) {
				return fmt.Errorf("%s no longer %s after %s: %+v", server, what, time.Since(start).Round(time.Millisecond), hosts)
			}
		}
		time.Sleep(50 * time.Millisecond)
	}
	return nil
}
