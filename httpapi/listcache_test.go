package httpapi

import (
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/rollcall-io/rollcall/registry"
)

func TestListCache_BuiltOncePerChange(t *testing.T) {
	t.Parallel()
	s, _ := newTestServer(t, nil)
	for round := range 3 {
		do(s, http.MethodPost, nsPrefix+"/instance?serviceName=svc&ip=10.0.0.1&port="+strconv.Itoa(round))
		bodies := make([]string, 32)
		var wg sync.WaitGroup
		for i := range bodies {
			wg.Add(1)
			go func() { defer wg.Done(); bodies[i] = do(s, http.MethodGet, listPath).Body.String() }()
		}
		wg.Wait()
		for _, body := range bodies {
			if body != bodies[0] || strings.Count(body, `"ip"`) != round+1 {
				t.Fatalf("round %d: %s", round, body)
			}
		}
	}
	// Every goroutine may miss before the first has rendered; none renders a second time.
	entry := s.lists.shards[shardOf(registry.NewServiceKey("", "", "svc"))].entries[registry.NewServiceKey("", "", "svc")]
	if views := *entry.views.Load(); len(views) != 1 {
		t.Errorf("%d views of one kind", len(views))
	}
}

func TestListCache_ViewsAreApart(t *testing.T) {
	t.Parallel()
	s, f := newTestServer(t, nil)
	do(s, http.MethodPost, registerPath+"&clusterName=c1")
	do(s, http.MethodPost, nsPrefix+"/instance?serviceName=svc&ip=10.0.0.2&port=80&clusterName=c2&healthy=false")
	ask := func(target, agent string) string {
		t.Helper()
		return strings.Join(contractStep{method: http.MethodGet, target: target, headers: [][2]string{{"User-Agent", agent}}}.run(s), "")
	}
	for range 2 { // rendered, then cached
		if got := ask(listPath, "x"); strings.Count(got, `"ip"`) != 2 || !strings.Contains(got, `"dom":"svc"`) {
			t.Errorf("all: %s", got)
		}
		if got := ask(listPath, "Nacos-Java-Client:v1.4.7"); !strings.Contains(got, `"dom":"DEFAULT_GROUP@@svc"`) {
			t.Errorf("java: %s", got)
		}
		if got := ask(listPath+"&healthyOnly=true", "x"); strings.Count(got, `"ip"`) != 1 {
			t.Errorf("healthy only: %s", got)
		}
		if got := ask(listPath+"&clusters=c2", "x"); strings.Count(got, `"ip"`) != 1 || !strings.Contains(got, `"clusters":"c2"`) {
			t.Errorf("c2: %s", got)
		}
	}
	f.switches.DefaultCacheMillis = 4000
	if got := ask(listPath, "x"); !strings.Contains(got, `"cacheMillis":4000`) {
		t.Errorf("the switch is not obeyed: %s", got)
	}
}

func TestListCache_Bounded(t *testing.T) {
	t.Parallel()
	const limit = 64 << 10
	s, _ := newTestServer(t, func(o *Options) { o.ListCacheBytes = limit })
	for i := range 400 {
		name := "svc" + strconv.Itoa(i)
		do(s, http.MethodPost, nsPrefix+"/instance?ip=10.0.0.1&port=80&serviceName="+name)
		do(s, http.MethodGet, nsPrefix+"/instance/list?serviceName="+name)
		// What a client makes up leaves nothing behind.
		do(s, http.MethodGet, nsPrefix+"/instance/list?serviceName="+name+"&env=e"+name)
		do(s, http.MethodGet, nsPrefix+"/instance/list?serviceName=none"+name)
	}
	held := int64(0)
	for i := range s.lists.shards {
		sum := int64(0)
		for _, e := range s.lists.shards[i].entries {
			sum += e.bytes
		}
		if sum != s.lists.shards[i].bytes {
			t.Errorf("shard %d counts %d bytes and holds %d", i, s.lists.shards[i].bytes, sum)
		}
		held += sum
	}
	if shown := metric(t, s, "rollcall_http_list_cache_bytes"); held > limit || held == 0 || shown != float64(held) {
		t.Errorf("%d bytes held, limit %d, metric %v", held, limit, shown)
	}
}

// A reader that holds an older state must not displace the newer one.
func TestListCache_OldStateIsNotKept(t *testing.T) {
	t.Parallel()
	s, f := newTestServer(t, nil)
	key := registry.NewServiceKey("", "", "svc")
	do(s, http.MethodPost, registerPath)
	old := f.Service(key)
	do(s, http.MethodPost, registerPath+"1")
	newest := f.Service(key)
	view := listView{cacheMillis: 3000}
	s.lists.rendered(newest, view)
	if body := s.lists.rendered(old, view).bytes; strings.Count(string(body), `"ip"`) != 1 {
		t.Errorf("old state: %s", body)
	}
	if kept := s.lists.shards[shardOf(key)].entries[key].service; kept != newest {
		t.Errorf("kept revision %d, want %d", kept.Revision, newest.Revision)
	}
}

func TestChecksum_FollowsContent(t *testing.T) {
	t.Parallel()
	base := registry.Spec{Address: registry.Address{Cluster: "DEFAULT", IP: "10.0.0.1", Port: 80}, Enabled: true, Healthy: true, Ephemeral: true, Weight: 1}
	sum := func(change func(*registry.Spec, *registry.ServiceSpec)) string {
		spec, settings := base, registry.ServiceSpec{}
		change(&spec, &settings)
		d := registry.NewDraft(registry.NewServiceKey("", "", "svc"), 1)
		d.SetSpec(settings)
		d.Put(&registry.Instance{Spec: spec})
		return checksumOf(d.Service())
	}
	first := sum(func(*registry.Spec, *registry.ServiceSpec) {})
	if again := sum(func(*registry.Spec, *registry.ServiceSpec) {}); again != first || len(first) != 32 {
		t.Errorf("checksums %q and %q of the same content", first, again)
	}
	m := registry.Metadata{{Key: "a", Value: "1"}}
	for name, change := range map[string]func(*registry.Spec, *registry.ServiceSpec){
		"health":           func(s *registry.Spec, _ *registry.ServiceSpec) { s.Healthy = false },
		"weight":           func(s *registry.Spec, _ *registry.ServiceSpec) { s.Weight = 2 },
		"enabled":          func(s *registry.Spec, _ *registry.ServiceSpec) { s.Enabled = false },
		"metadata":         func(s *registry.Spec, _ *registry.ServiceSpec) { s.Metadata = m },
		"port":             func(s *registry.Spec, _ *registry.ServiceSpec) { s.Port = 81 },
		"service metadata": func(_ *registry.Spec, s *registry.ServiceSpec) { s.Metadata = m },
		"threshold":        func(_ *registry.Spec, s *registry.ServiceSpec) { s.ProtectThreshold = 0.5 },
	} {
		if sum(change) == first {
			t.Errorf("%s does not change the checksum", name)
		}
	}
}
