package e2e

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/rollcall-io/rollcall/test/e2e/nodes"
)

// bad is a request that must be refused with an answer that holds says.
type bad struct{ name, method, path, body, says string }

// badInput is a good registration with one wrong value each, and beats.
func badInput() []bad {
	register := func(name, value, says string) bad {
		form := url.Values{"serviceName": {"svc"}, "ip": {"10.0.0.1"}, "port": {"80"}}
		form.Set(name, value)
		return bad{name + "=" + value[:min(len(value), 20)], http.MethodPost, "/instance", form.Encode(), says}
	}
	beat := func(text, says string) bad {
		return bad{"beat " + text, http.MethodPut, "/instance/beat", url.Values{"serviceName": {"svc"}, "beat": {text}}.Encode(), says}
	}
	return []bad{
		register("port", "70000", "70000"), register("port", "abc", "abc"), register("port", "-1", "-1"), register("port", "", "port"),
		register("weight", "abc", "abc"), register("weight", "NaN", "NaN"), register("weight", "-1", "weight"), register("weight", "1e309", "weight"),
		register("ip", "", "ip"), register("ip", "999.1.1.1", "999.1.1.1"), register("ip", "10.0.0.1:80", "10.0.0.1:80"),
		register("serviceName", "", "serviceName"), register("serviceName", "g@@", "serviceName"), register("serviceName", "a b", "a b"),
		register("serviceName", strings.Repeat("x", 2000), "serviceName"), register("clusterName", "a b", "a b"),
		register("metadata", "{bad", "{bad"), register("metadata", "plain", "plain"),
		register("metadata", `{"k":"`+strings.Repeat("v", 200_000)+`"}`, "metadata"),
		register("metadata", `{"preserved.heart.beat.timeout":"1000"}`, "preserved.heart.beat.timeout"),
		register("metadata", strings.Repeat("x", 2<<20), ""), // over the limit of a body
		beat(`{"ip":"10.0.0.1","port":80`, "beat"), beat(`{"ip":"10.0.0.1","port":70000}`, "70000"), beat(`{"ip":"","port":80}`, "ip"),
		beat(`{}`, "ip"), beat(`[]`, "beat"), beat(`{"ip":"10.0.0.1","port":80,"weight":"NaN"}`, "NaN"),
	}
}

func TestBadInput_IsNamedAndChangesNothingOnLeaderAndFollower(t *testing.T) {
	c := nodes.Start(t, binary, 3, unhurried...)
	leader := c.Leader()
	before := lastIndex(t, leader)
	answers := map[string]string{}
	for _, n := range []*nodes.Node{leader, c.Others(leader)[0]} {
		for _, b := range badInput() {
			ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
			a, err := n.SendRaw(ctx, b.method, "http://"+n.HTTP+nodes.NS+b.path, b.body)
			cancel()
			if err != nil {
				t.Errorf("%s on %s: %v", b.name, n.ID, err)
				continue
			}
			caused := a.Status == http.StatusInternalServerError && strings.HasPrefix(a.Body, "caused:")
			if a.Status/100 != 4 && !caused || !strings.Contains(a.Body, b.says) {
				t.Errorf("%s on %s: %d %q, want a refusal that says %q", b.name, n.ID, a.Status, a.Body, b.says)
			}
			if first, seen := answers[b.name+b.body]; seen && first != a.Body {
				t.Errorf("%s: %q on the leader, %q on a follower", b.name, first, a.Body)
			}
			answers[b.name+b.body] = a.Body
		}
	}
	for _, n := range c.Nodes() {
		if keys := n.Keys("svc"); keys == nil || len(keys) != 0 {
			t.Errorf("%s lists %v after nothing but bad input", n.ID, keys)
		}
	}
	if moved := lastIndex(t, leader) - before; moved > 1 { // the one that compares digests, once a minute at most
		t.Errorf("bad input moved the log by %v", moved)
	}
}

// lastIndex is the newest entry in a node's log.
func lastIndex(t *testing.T, n *nodes.Node) float64 {
	t.Helper()
	index, err := n.Metric("rollcall_raft_last_index")
	if err != nil {
		t.Fatal(err)
	}
	return index
}

// TestBeats_MoveTheLogByNothing: each heartbeat was written to the log, which grew without
// bound (hashicorp/consul #866, #1069).
func TestBeats_MoveTheLogByNothing(t *testing.T) {
	c := nodes.Start(t, binary, 3, unhurried...)
	fleet := block("svc", "10.0.0.1", 1000, either(300, 5000), nodes.Instance{Interval: 200 * time.Millisecond, Timeout: time.Minute, Delete: 2 * time.Minute})
	for i, in := range fleet {
		c.Nodes()[i%3].MustRegister(in)
	}
	leader := c.Leader()
	taken := func() (total float64) {
		for _, n := range c.Nodes() {
			beats, err := n.Metric(`rollcall_health_beats_total{outcome="known"}`)
			if err != nil {
				t.Fatal(err)
			}
			total += beats
		}
		return total
	}
	index, beats := lastIndex(t, leader), taken()
	stop := c.KeepBeating(fleet...)
	pass(either(4*time.Second, 5*time.Minute))
	stop()
	beats = taken() - beats
	moved := lastIndex(t, leader) - index
	// The registrations are followed by one comparison of digests, at most a minute later.
	if moved > 1 || beats < 100 {
		t.Errorf("%v beats moved the log by %v entries", beats, moved)
	}
	t.Logf("%v beats, %v log entries", beats, moved)
}
