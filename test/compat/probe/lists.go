package probe

import (
	"encoding/json"
	"fmt"
	"net/url"
	"time"
)

// Host is an instance as a node lists it.
type Host struct {
	IP          string            `json:"ip"`
	Port        int               `json:"port"`
	Weight      float64           `json:"weight"`
	Healthy     bool              `json:"healthy"`
	Enabled     bool              `json:"enabled"`
	Ephemeral   bool              `json:"ephemeral"`
	ClusterName string            `json:"clusterName"`
	Metadata    map[string]string `json:"metadata"`
}

// Service names a service; the zero namespace and group are the defaults.
type Service struct{ Namespace, Group, Name string }

func (s Service) params() url.Values {
	q := url.Values{"serviceName": {s.Name}}
	if s.Namespace != "" {
		q.Set("namespaceId", s.Namespace)
	}
	if s.Group != "" {
		q.Set("groupName", s.Group)
	}
	return q
}

// List asks one node for a service's instances.
func (w *World) List(server string, s Service) ([]Host, error) {
	body, err := w.Request(server, "GET", "/instance/list", s.params())
	if err != nil {
		return nil, err
	}
	var reply struct {
		Hosts []Host `json:"hosts"`
	}
	if err := json.Unmarshal([]byte(body), &reply); err != nil {
		return nil, fmt.Errorf("%s: %w", body, err)
	}
	return reply.Hosts, nil
}

// Remove deregisters an instance behind the client's back.
func (w *World) Remove(s Service, ip string, port int) error {
	q := s.params()
	q.Set("ip", ip)
	q.Set("port", fmt.Sprint(port))
	var err error
	for _, server := range w.Servers {
		if _, err = w.Request(server, "DELETE", "/instance", q); err == nil {
			return nil
		}
	}
	return err
}

// Everywhere waits until every node's list satisfies good.
func (w *World) Everywhere(within time.Duration, s Service, what string, good func([]Host) bool) error {
	for _, server := range w.Servers {
		var hosts []Host
		var err error
		if e := Until(within, func() bool { hosts, err = w.List(server, s); return err == nil && good(hosts) }); e != nil {
			return fmt.Errorf("%s: %s lists %d instances of %s, wanted %s; %v", e, server, len(hosts), s.Name, what, err)
		}
	}
	return nil
}

// Count waits until every node lists n healthy instances and no other.
func (w *World) Count(within time.Duration, s Service, n int) error {
	return w.Everywhere(within, s, fmt.Sprintf("%d, all healthy", n), func(hosts []Host) bool { return Healthy(hosts) == n && len(hosts) == n })
}

// Healthy counts healthy instances.
func Healthy(hosts []Host) int {
	n := 0
	for _, h := range hosts {
		if h.Healthy {
			n++
		}
	}
	return n
}

// Until polls cond.
func Until(within time.Duration, cond func() bool) error {
	start := time.Now()
	for !cond() {
		if time.Since(start) > within {
			return fmt.Errorf("not within %s", within)
		}
		time.Sleep(50 * time.Millisecond)
	}
	return nil
}

// Watch looks at a service on every node that answers, all the time, until the returned
// function is called, which gives the fewest healthy instances that any look showed and
// how many looks there were. A look at a node that does not answer does not count.
func (w *World) Watch(s Service) (stop func() (fewest, looks int)) {
	done, gone := make(chan struct{}), make(chan struct{})
	fewest, looks := 1<<30, 0
	go func() {
		defer close(gone)
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for {
			for _, server := range w.Servers {
				if hosts, err := w.List(server, s); err == nil {
					fewest, looks = min(fewest, Healthy(hosts)), looks+1
				}
			}
			select {
			case <-done:
				return
			case <-tick.C:
			}
		}
	}()
	return func() (int, int) { close(done); <-gone; return fewest, looks }
}
