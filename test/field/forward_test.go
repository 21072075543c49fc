package field

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// call is a write as clients make it, its parameters in a fixed order so that they can be
// split.
type call struct {
	name   string
	method string
	path   string
	params [][2]string
}

func writes(service string) []call {
	instance := [][2]string{{"serviceName", service}, {"ip", "10.1.0.1"}, {"port", "8080"}}
	with := func(more ...[2]string) [][2]string { return append(append([][2]string{}, instance...), more...) }
	named := func(more ...[2]string) [][2]string {
		return append([][2]string{{"serviceName", service + "-s"}}, more...)
	}
	return []call{
		{"register", http.MethodPost, "/instance", with([2]string{"weight", "2"}, [2]string{"metadata", `{"a":"1+1"}`})},
		{"full beat", http.MethodPut, "/instance/beat", [][2]string{{"serviceName", service}, {"beat", `{"ip":"10.1.0.1","port":8080}`}}},
		{"light beat", http.MethodPut, "/instance/beat", instance},
		{"update", http.MethodPut, "/instance", with([2]string{"weight", "3"}, [2]string{"metadata", `{"a":"2"}`})},
		{"make service", http.MethodPost, "/service", named([2]string{"protectThreshold", "0.5"})},
		{"update service", http.MethodPut, "/service", named([2]string{"protectThreshold", "0.25"})},
		{"delete service", http.MethodDelete, "/service", named()},
		{"deregister", http.MethodDelete, "/instance", instance},
	}
}

// split puts parameters into query and body: all here, all there, or in turn.
func split(c call, how string) (query, body string) {
	var parts [2][]string
	for i, p := range c.params {
		at := map[string]int{"query": 0, "body": 1, "both": i % 2}[how]
		parts[at] = append(parts[at], p[0]+"="+url.QueryEscape(p[1]))
	}
	return strings.Join(parts[0], "&"), strings.Join(parts[1], "&")
}

// TestForwarding_LosesNeitherBodyNorQuery sends each kind of write with its parameters in
// the query, in the body, and split over both, with a length and in chunks, through the
// leader and through a follower: the answers and the effect are the same
// (alibaba/nacos #2537: a body was gone once a filter had read it; rqlite/rqlite #329).
func TestForwarding_LosesNeitherBodyNorQuery(t *testing.T) {
	c := startCluster(t)
	through := map[string]*member{"leader": c.Leader(), "follower": c.Followers()[0]}
	want := map[string]string{}
	for _, how := range []string{"query", "body", "both"} {
		for _, framing := range []string{"length", "chunked"} {
			for name, node := range through {
				service := fmt.Sprintf("fw-%s-%s-%s", how, framing, name)
				for _, w := range writes(service) {
					query, body := split(w, how)
					a := insist(t, node, step{method: w.method, target: prefix + w.path + "?" + query, body: body, chunked: framing == "chunked"})
					got := fmt.Sprintf("%d %s", a.status, a.body)
					if first, seen := want[w.name]; seen && got != first {
						t.Errorf("%s, %s, %s, through the %s: %s, elsewhere %s", w.name, how, framing, name, got, first)
					}
					want[w.name] = got
					checkEffect(t, node, w.name, service)
				}
			}
		}
	}
	for name, got := range want {
		if !strings.HasPrefix(got, "200 ") {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// checkEffect looks at the service on the node that answered, at once.
func checkEffect(t *testing.T, node *member, name, service string) {
	t.Helper()
	a, err := node.Do(http.MethodGet, "/instance/list", "serviceName="+service)
	if err != nil {
		t.Fatal(err)
	}
	wants := map[string]string{"register": `"a":"1+1"`, "update": `"weight":3.0`, "deregister": `"hosts":[]`}
	if want := wants[name]; !strings.Contains(a.Body, want) {
		t.Errorf("%s of %s on %s: list %s, want %s", name, service, node.ID, a.Body, want)
	}
	s, err := node.Do(http.MethodGet, "/service", "serviceName="+service+"-s")
	if err != nil {
		t.Fatal(err)
	}
	wants = map[string]string{"make service": `"protectThreshold":0.5`, "update service": `"protectThreshold":0.25`, "delete service": "not found"}
	if want := wants[name]; !strings.Contains(s.Body, want) {
		t.Errorf("%s of %s on %s: %s, want %s", name, service, node.ID, s.Body, want)
	}
}
