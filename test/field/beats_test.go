package field

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"
)

// must sends a request until it is answered 200 and returns what was said.
func must(t *testing.T, n *member, method, path, params string) string {
	t.Helper()
	if !strings.HasPrefix(path, "/nacos") {
		path = prefix + path
	}
	a := insist(t, n, step{method: method, target: path + "?" + params})
	if a.status != http.StatusOK {
		t.Fatalf("%s %s?%s on %s: %d %s", method, path, params, n.ID, a.status, a.body)
	}
	return a.body
}

// repeatedly calls each function every 300 ms until stop is called.
func repeatedly(calls ...func()) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	for _, f := range calls {
		wg.Go(func() {
			for ctx.Err() == nil {
				f()
				select {
				case <-ctx.Done():
				case <-time.After(300 * time.Millisecond):
				}
			}
		})
	}
	return func() { cancel(); wg.Wait() }
}

// short leaves a busy machine seconds between beats, and ends soon all the same.
var short = timeouts(1000, 4000, 6000)

// TestGroupOfABeat_NoSecondServiceAndNoExpiry: the group of a beat was ignored. A second
// service came into being in the default group, while the registered one expired
// (alibaba/nacos #6693, PR #6710; hyperf/hyperf #3873). Each instance lives on one form of
// beat alone, for longer than it may be silent.
func TestGroupOfABeat_NoSecondServiceAndNoExpiry(t *testing.T) {
	c := startCluster(t)
	full := func(name string, port int) string {
		return "&beat=" + url.QueryEscape(fmt.Sprintf(`{"ip":"10.1.0.1","port":%d,"serviceName":"%s"}`, port, name))
	}
	forms := []string{
		"serviceName=svc&groupName=G1" + full("svc", 1), "serviceName=G1@@svc" + full("svc", 2), "serviceName=svc&groupName=G1" + full("G1@@svc", 3),
		"serviceName=svc&groupName=G1&ip=10.1.0.1&port=4", "serviceName=G1@@svc&ip=10.1.0.1&port=5",
	}
	var beats []func()
	for i, form := range forms {
		must(t, c.Leader(), http.MethodPost, "/instance", fmt.Sprintf("serviceName=svc&groupName=G1&ip=10.1.0.1&port=%d&%s", i+1, short))
		beats = append(beats, func() { _, _ = c.Members()[i%3].Do(http.MethodPut, "/instance/beat", form) })
	}
	stop := repeatedly(beats...)
	defer stop()
	for end := time.Now().Add(8 * time.Second); time.Now().Before(end); <-time.After(200 * time.Millisecond) {
		for _, m := range c.Members() {
			if text := must(t, m, http.MethodGet, "/service/list", "pageNo=1&pageSize=10"); text != `{"doms":[],"count":0}` {
				t.Fatalf("the default group on %s: %s", m.ID, text)
			}
		}
	}
	for _, m := range c.Members() {
		c.Until("all five healthy on "+m.ID, func() bool { return m.Healthy("G1@@svc") == len(forms) })
		if text := must(t, m, http.MethodGet, "/service/list", "pageNo=1&pageSize=10&groupName=G1"); text != `{"doms":["svc"],"count":1}` {
			t.Errorf("group G1 on %s: %s", m.ID, text)
		}
	}
}

// TestBeatOfAPersistentInstance_NeitherConvertsNorEvicts: beats put a persistent instance
// under the timer of those that beat, and it was evicted when they ended (alibaba/nacos
// #910; nacos-sdk-python #96). Its timeouts say 1.5 and 3 seconds, in vain.
func TestBeatOfAPersistentInstance_NeitherConvertsNorEvicts(t *testing.T) {
	c := startCluster(t)
	must(t, c.Leader(), http.MethodPost, "/instance", "serviceName=svc&ip=127.0.0.1&port=1&ephemeral=false&"+brief)
	must(t, c.Leader(), http.MethodPost, "/instance", "serviceName=other&ip=10.1.0.1&port=1&"+brief)
	for i, beat := range []string{`{"ip":"127.0.0.1","port":1}`, `{"ip":"127.0.0.1","port":1,"ephemeral":true}`, `{"ip":"127.0.0.1","port":1,"ephemeral":false}`} {
		text := must(t, c.Members()[i], http.MethodPut, "/instance/beat", "serviceName=svc&beat="+url.QueryEscape(beat))
		if !strings.Contains(text, `"code":10200`) {
			t.Errorf("beat %s: %s", beat, text)
		}
	}
	must(t, c.Leader(), http.MethodPut, "/instance/beat", "serviceName=svc&ip=127.0.0.1&port=1")
	c.Until("an ephemeral instance with the same timeouts gone", func() bool {
		hosts, err := c.Leader().List("other")
		return err == nil && len(hosts) == 0
	})
	for end := time.Now().Add(2 * time.Second); time.Now().Before(end); <-time.After(100 * time.Millisecond) {
		for _, m := range c.Members() {
			var list struct{ Hosts []struct{ Ephemeral bool } }
			text := must(t, m, http.MethodGet, "/instance/list", "serviceName=svc")
			if err := json.Unmarshal([]byte(text), &list); err != nil || len(list.Hosts) != 1 || list.Hosts[0].Ephemeral {
				t.Fatalf("%s lists %s", m.ID, text)
			}
		}
	}
}
