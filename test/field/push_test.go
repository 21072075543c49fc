package field

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestPush_SaysWhatTheListSays: what was pushed had question marks for metadata in other
// scripts (alibaba/nacos #2962; apache/dubbo #4668), null for none (nacos-sdk-go #86,
// #472), and another view of the protect threshold than the list (alibaba/nacos #2031,
// #5083).
func TestPush_SaysWhatTheListSays(t *testing.T) {
	c := startCluster(t)
	asked := c.Followers()[0]
	must(t, c.Leader(), http.MethodPost, "/service", "serviceName=svc&protectThreshold=0.5")
	s := newSubscriber(t)
	s.subscribe(asked, "serviceName=svc")
	other := url.QueryEscape(`{"区":"上海 东","e":"🚀"}`)
	for i, params := range []string{"metadata=" + other, "metadata=", "metadata=%7B%7D", "metadata=%7B%22a%22%3Anull%7D", "", "healthy=false", "healthy=false", "healthy=false"} {
		must(t, c.Leader(), http.MethodPost, "/instance", fmt.Sprintf("serviceName=svc&ip=10.1.0.1&port=%d&%s", i+1, params))
		p := s.until(fmt.Sprintf("%d hosts", i+1), func(l pushedList) bool { return len(l.Hosts) == i+1 })
		if strings.Contains(p.Data, "null") {
			t.Errorf("null in %s", p.Data)
		}
		var listed pushedList
		if err := json.Unmarshal([]byte(must(t, asked, http.MethodGet, "/instance/list", "serviceName=svc")), &listed); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(listed, p.list) {
			t.Errorf("pushed %+v, listed %+v", p.list, listed)
		}
		for _, h := range p.list.Hosts {
			if h.Port == 1 && (h.Metadata["区"] != "上海 东" || h.Metadata["e"] != "🚀") {
				t.Errorf("pushed %s", p.Data)
			}
		}
	}
}

// gone deregisters an instance of 10.1.0.1, again until that is answered ok.
func gone(m *member, service string, port int) {
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); {
		if a, err := m.Deregister(service, "10.1.0.1", port); err == nil && a.Status == http.StatusOK {
			return
		}
	}
}

// TestPush_TheLastInstanceReallyLeaves: when the last instance was gone nothing was pushed,
// and consumers went on calling a dead address for hours (higress-group/higress #1566,
// #4595; alibaba/nacos #60). It goes by a request, by its silence, and together with
// another.
func TestPush_TheLastInstanceReallyLeaves(t *testing.T) {
	c := startCluster(t)
	for service, leave := range map[string]func(service string){
		"by-request": func(service string) {
			must(t, c.Followers()[1], http.MethodDelete, "/instance", "serviceName="+service+"&ip=10.1.0.1&port=1")
		},
		"by-silence": func(string) {},
		"two-at-once": func(service string) {
			var wg sync.WaitGroup
			for port := range 2 {
				wg.Go(func() { gone(c.Members()[port], service, port+1) })
			}
			wg.Wait()
		},
	} {
		t.Run(service, func(t *testing.T) {
			s := newSubscriber(t)
			s.subscribe(c.Followers()[0], "serviceName="+service)
			lives := map[string]string{"by-silence": brief}[service]
			must(t, c.Leader(), http.MethodPost, "/instance", "serviceName="+service+"&ip=10.1.0.1&port=1&"+lives)
			hosts := 1
			if service == "two-at-once" {
				hosts = 2
				must(t, c.Leader(), http.MethodPost, "/instance", "serviceName="+service+"&ip=10.1.0.1&port=2")
			}
			there := s.until("the instances", func(l pushedList) bool { return len(l.Hosts) == hosts })
			leave(service)
			empty := func(l pushedList) bool { return l.Hosts != nil && len(l.Hosts) == 0 }
			left := s.until("no hosts", empty)
			if left.LastRefTime <= there.LastRefTime {
				t.Errorf("empty at %d, not empty at %d", left.LastRefTime, there.LastRefTime)
			}
			for _, m := range c.Members() {
				c.Until("an empty list on "+m.ID, func() bool { hosts, err := m.List(service); return err == nil && len(hosts) == 0 })
			}
			s.quiet(time.Second, empty)
		})
	}
}

// TestPush_EachClusterFilterGetsItsOwnView: the packet was made once and sent to everybody,
// so that who asked for one cluster got all, or kept it under a key that nobody reads
// (alibaba/nacos #64, and the cache key of the nacos-sdk-go 1.x).
func TestPush_EachClusterFilterGetsItsOwnView(t *testing.T) {
	c := startCluster(t)
	subscribers := map[string]*subscriber{}
	for i, clusters := range []string{"c1", "", "c1,c2"} {
		subscribers[clusters] = newSubscriber(t)
		subscribers[clusters].subscribe(c.Members()[i], "serviceName=svc&clusters="+clusters)
	}
	for _, round := range []struct {
		cluster string
		port    int
		want    map[string][]int
	}{
		{"c1", 1, map[string][]int{"c1": {1}, "": {1}, "c1,c2": {1}}},
		{"c2", 2, map[string][]int{"": {1, 2}, "c1,c2": {1, 2}}},
		{"c3", 3, map[string][]int{"": {1, 2, 3}}},
		{"c1", 4, map[string][]int{"c1": {1, 4}, "": {1, 4, 2, 3}, "c1,c2": {1, 4, 2}}},
	} {
		must(t, c.Leader(), http.MethodPost, "/instance", fmt.Sprintf("serviceName=svc&clusterName=%s&ip=10.1.0.1&port=%d&%s", round.cluster, round.port, lasting))
		for clusters, s := range subscribers {
			want, told := round.want[clusters]
			if !told {
				continue // whether a view that did not change is pushed again is not the matter
			}
			p := s.until(fmt.Sprintf("ports %v for clusters %q", want, clusters), func(l pushedList) bool { return slices.Equal(l.ports(), want) })
			if p.list.Clusters != clusters || p.list.Name != "DEFAULT_GROUP@@svc" {
				t.Errorf("for clusters %q: %s", clusters, p.Data)
			}
		}
	}
	for clusters, s := range subscribers {
		s.quiet(200*time.Millisecond, func(l pushedList) bool {
			return l.Clusters == clusters && (clusters == "" || !slices.Contains(l.ports(), 3))
		})
	}
}

// TestPush_BurstIsMergedAndTheLastStateComes: under rapid changes what was pushed mixed old
// and new, or the last change was missing; or each change was a packet of its own for each
// subscriber (Netflix/eureka #1120, #1173).
func TestPush_BurstIsMergedAndTheLastStateComes(t *testing.T) {
	const clients, changes = 4, 400
	c := startCluster(t)
	var all []*subscriber
	for i := range 12 {
		s := newSubscriber(t)
		s.subscribe(c.Members()[i%3], "serviceName=svc")
		all = append(all, s)
	}
	counts, final := make([]int, len(all)), make([]push, len(all))
	var wg sync.WaitGroup
	for i, s := range all {
		wg.Go(func() {
			found := false
			final[i], counts[i], found = s.await(func(l pushedList) bool { return slices.Equal(l.ports(), []int{9}) })
			if !found {
				t.Errorf("subscriber %d was last told %s", i, final[i].Data)
			}
		})
	}
	var writers sync.WaitGroup
	for k := range clients {
		writers.Go(func() {
			for i := range changes / clients {
				_, _ = c.Members()[k%3].Register("svc", "10.1.0.1", 10+k, fmt.Sprintf("metadata=i%%3D%d", i))
			}
			gone(c.Members()[k%3], "svc", 10+k)
		})
	}
	writers.Wait()
	must(t, c.Leader(), http.MethodPost, "/instance", "serviceName=svc&ip=10.1.0.1&port=9&"+lasting)
	wg.Wait()
	for i, s := range all {
		if counts[i] > changes/2 {
			t.Errorf("subscriber %d got %d packets for %d changes", i, counts[i], changes)
		}
		s.quiet(50*time.Millisecond, func(l pushedList) bool { return reflect.DeepEqual(l, final[i].list) })
	}
	t.Logf("%d changes, packets for each subscriber: %v", changes, counts)
}
