package nodes

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// NS is the prefix of the Nacos routes.
const NS = "/nacos/v1/ns"

// requestTimeout is above the server's own deadline of a write, so that its answer is
// seen.
const requestTimeout = 6 * time.Second

// Answer is what a node said.
type Answer struct {
	Status int
	Body   string
	Header http.Header
}

// OK tells whether it is the `ok` of an acknowledged write.
func (a Answer) OK() bool { return a.Status == http.StatusOK && a.Body == "ok" }

// Host is an instance as a list shows it.
type Host struct {
	IP        string
	Port      int
	Healthy   bool
	Ephemeral bool
	Weight    float64
	Metadata  map[string]string
}

// Key is ip:port.
func (h Host) Key() string { return h.IP + ":" + strconv.Itoa(h.Port) }

// Send sends a request with a form as its body, or as its query on GET. The error is
// that of the connection. Safe for concurrent use.
func (n *Node) Send(ctx context.Context, method, path string, form url.Values) (Answer, error) {
	target, body := "http://"+n.HTTP+path, ""
	if method == http.MethodGet {
		target += "?" + form.Encode()
	} else {
		body = form.Encode()
	}
	return n.SendRaw(ctx, method, target, body)
}

// SendRaw sends a body as it is, called a form, to an URL of any shape.
func (n *Node) SendRaw(ctx context.Context, method, target, body string) (Answer, error) {
	req, err := http.NewRequestWithContext(ctx, method, target, strings.NewReader(body))
	if err != nil {
		return Answer{}, err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	resp, err := n.c.client.Do(req)
	if err != nil {
		return Answer{}, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return Answer{resp.StatusCode, string(text), resp.Header}, err
}

// Do is Send to a Nacos route with the usual timeout.
func (n *Node) Do(method, path string, form url.Values) (Answer, error) {
	ctx, cancel := context.WithTimeout(context.Background(), requestTimeout)
	defer cancel()
	return n.Send(ctx, method, NS+path, form)
}

// Redial lets the requests that follow make connections of their own, as a client does
// that has learnt that a node is elsewhere. Those under way go on.
func (c *Cluster) Redial() { c.client.CloseIdleConnections() }

// Ready tells whether the node says that it is ready.
func (n *Node) Ready() bool {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	a, err := n.Send(ctx, http.MethodGet, "/readyz", nil)
	return err == nil && a.Status == http.StatusOK
}

// NamesLeader is the id in X-Rollcall-Leader, empty when the node names none.
func (n *Node) NamesLeader() string {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	a, err := n.Send(ctx, http.MethodGet, NS+"/instance/list", url.Values{"serviceName": {"none"}})
	if err != nil {
		return ""
	}
	return a.Header.Get("X-Rollcall-Leader")
}

// List are the hosts of a service as this node shows them.
func (n *Node) List(service string) ([]Host, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	a, err := n.Send(ctx, http.MethodGet, NS+"/instance/list", url.Values{"serviceName": {service}})
	if err != nil {
		return nil, err
	}
	if a.Status != http.StatusOK {
		return nil, fmt.Errorf("list of %s on %s: %d %s", service, n.ID, a.Status, a.Body)
	}
	var list struct{ Hosts []Host }
	if err := json.Unmarshal([]byte(a.Body), &list); err != nil {
		return nil, fmt.Errorf("list of %s on %s: %w", service, n.ID, err)
	}
	return list.Hosts, nil
}

// Keys are the listed hosts as ip:port with their health; nil when the node does not
// answer.
func (n *Node) Keys(service string) map[string]bool {
	hosts, err := n.List(service)
	if err != nil {
		return nil
	}
	keys := make(map[string]bool, len(hosts))
	for _, h := range hosts {
		keys[h.Key()] = h.Healthy
	}
	return keys
}

// Metric reads one series of /metrics by its name, with labels as they are printed.
func (n *Node) Metric(series string) (float64, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	a, err := n.Send(ctx, http.MethodGet, "/metrics", nil)
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(a.Body) {
		if value, found := strings.CutPrefix(strings.TrimSpace(line), series+" "); found {
			return strconv.ParseFloat(value, 64)
		}
	}
	return 0, fmt.Errorf("%s shows no %s", n.ID, series)
}
