package clustertest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

const nacos = "/nacos/v1/ns"

// clientTimeout is far above the server's own deadline of a write, so that its answer is
// seen, also by a machine that hashes passwords under the race detector beside other work.
const clientTimeout = 20 * time.Second

// Answer is what a node said.
type Answer struct {
	Status int
	Body   string
	Header http.Header
}

// Host is an instance as a list shows it.
type Host struct {
	IP       string
	Port     int
	Healthy  bool
	Metadata map[string]string
}

// Do sends a Nacos request to the node, params `k=v&k=v`, in the query. Safe for
// concurrent use. The error is that of the connection.
func (m *Member) Do(method, path, params string) (Answer, error) {
	req, err := http.NewRequest(method, m.HTTP+nacos+path+"?"+params, nil)
	if err != nil {
		return Answer{}, err
	}
	client := http.Client{Timeout: clientTimeout, Transport: m.c.transport}
	resp, err := client.Do(req)
	if err != nil {
		return Answer{}, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return Answer{resp.StatusCode, string(body), resp.Header}, err
}

// Register registers an ephemeral instance; more is added to the parameters.
func (m *Member) Register(service, ip string, port int, more ...string) (Answer, error) {
	return m.Do(http.MethodPost, "/instance", params(service, ip, port, more))
}

// Deregister removes one.
func (m *Member) Deregister(service, ip string, port int) (Answer, error) {
	return m.Do(http.MethodDelete, "/instance", params(service, ip, port, nil))
}

// Beat sends a light beat.
func (m *Member) Beat(service, ip string, port int) (Answer, error) {
	return m.Do(http.MethodPut, "/instance/beat", params(service, ip, port, nil))
}

func params(service, ip string, port int, more []string) string {
	return strings.Join(append([]string{fmt.Sprintf("serviceName=%s&ip=%s&port=%d", service, ip, port)}, more...), "&")
}

// List are the hosts of a service as this node shows them.
func (m *Member) List(service string) ([]Host, error) {
	a, err := m.Do(http.MethodGet, "/instance/list", "serviceName="+url.QueryEscape(service))
	if err != nil {
		return nil, err
	}
	if a.Status != http.StatusOK {
		return nil, fmt.Errorf("list of %s on %s: %d %s", service, m.ID, a.Status, a.Body)
	}
	var list struct{ Hosts []Host }
	if err := json.Unmarshal([]byte(a.Body), &list); err != nil {
		return nil, fmt.Errorf("list of %s on %s: %w", service, m.ID, err)
	}
	return list.Hosts, nil
}

// MustRegister registers and fails the test when that is not answered ok. What was refused
// with a 503 is sent again for a while: elections are short here, and on a busy machine one
// can come at any time.
func (m *Member) MustRegister(service, ip string, port int, more ...string) {
	m.c.t.Helper()
	a, err := m.Register(service, ip, port, more...)
	for end := time.Now().Add(patience); err == nil && a.Status == http.StatusServiceUnavailable && time.Now().Before(end); {
		a, err = m.Register(service, ip, port, more...)
	}
	if err != nil || a.Status != http.StatusOK || a.Body != "ok" {
		m.c.t.Fatalf("register %s %s:%d on %s: %v %+v", service, ip, port, m.ID, err, a)
	}
}

// Healthy is the number of healthy hosts of a service, -1 when the node does not say.
func (m *Member) Healthy(service string) int {
	hosts, err := m.List(service)
	if err != nil {
		return -1
	}
	n := 0
	for _, h := range hosts {
		if h.Healthy {
			n++
		}
	}
	return n
}
