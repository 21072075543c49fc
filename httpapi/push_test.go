package httpapi

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"github.com/rollcall-io/rollcall/registry"
)

// fakePusher remembers who subscribed.
type fakePusher struct {
	refuse bool
	subs   []registry.Subscriber
	told   []*registry.Service
	query  registry.SubscriberQuery
	all    bool
	counts registry.PushCounts
	reset  bool
}

func (p *fakePusher) Subscribe(s registry.Subscriber, told *registry.Service) bool {
	p.subs, p.told = append(p.subs, s), append(p.told, told)
	return !p.refuse
}

func (p *fakePusher) Subscribers(_ context.Context, q registry.SubscriberQuery, everywhere bool) []registry.Subscriber {
	p.query, p.all = q, everywhere
	return p.subs
}

func (p *fakePusher) Counts(_ context.Context, reset bool) registry.PushCounts {
	p.reset = reset
	return p.counts
}

// askAs sends a GET with a User-Agent from 10.1.1.1 and returns status and body.
func askAs(s *Server, target, agent string) (int, string) {
	req := httptest.NewRequest(http.MethodGet, target, nil)
	req.RemoteAddr = "10.1.1.1:5555"
	req.Header.Set("User-Agent", agent)
	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, req)
	return w.Code, w.Body.String()
}

func TestSubscribe_ByKindOfClientAndAddress(t *testing.T) {
	const java, golang = "Nacos-Java-Client:v1.4.7", "Nacos-Go-Client:v1.0.1"
	for _, row := range []struct {
		agent, query string
		want         string // address, or "" for no subscriber
	}{
		{java, "udpPort=7000&clientIP=10.2.2.2", "10.2.2.2:7000"},
		{java, "udpPort=7000&clientIP=2001:db8::1", "[2001:db8::1]:7000"},
		{java, "udpPort=7000&clientIP=::ffff:10.2.2.2", "10.2.2.2:7000"},
		{java, "udpPort=7000", "10.1.1.1:7000"},
		{java, "udpPort=7000&clientIP=resolve_failed", "10.1.1.1:7000"},
		{java, "udpPort=7000&clientIP=0.0.0.0", "10.1.1.1:7000"},
		{java, "udpPort=7000&clientIP=239.1.1.1", "10.1.1.1:7000"},
		{java, "udpPort=7000&clientIP=255.255.255.255", "10.1.1.1:7000"},
		{java, "udpPort=0", ""},
		{java, "udpPort=-1", ""},
		{java, "udpPort=65536", ""},
		{java, "", ""},
		{golang, "udpPort=7000", "10.1.1.1:7000"},
		{"Nacos-go-Client:v1.0.0", "udpPort=7000", "10.1.1.1:7000"},
		{"Nacos-CSharp-Client:v0.8.0", "udpPort=7000", ""},
		{"Nacos-CSharp-Client:v0.9.0", "udpPort=7000", "10.1.1.1:7000"},
		{"Nacos-C-Client:v1.0.11", "udpPort=7000", ""},
		{"vip-client4cpp:v1.0.12", "udpPort=7000", "10.1.1.1:7000"},
		{"Nacos-DNS:v0.4.3", "udpPort=7000", "10.1.1.1:7000"},
		{"Nacos-Java-Client", "udpPort=7000", ""},
		{"Nacos-Python-Client:v1.0.0", "udpPort=7000", ""},
		{"curl/8", "udpPort=7000", ""},
	} {
		p := &fakePusher{}
		s, _ := newTestServer(t, func(o *Options) { o.Pusher = p })
		_, body := askAs(s, "/nacos/v1/ns/instance/list?serviceName=orders&clusters=c1,c2&app=shop&"+row.query, row.agent)
		if row.want == "" {
			if len(p.subs) != 0 || !strings.Contains(body, `"cacheMillis":3000`) {
				t.Errorf("%s %s: %+v %s", row.agent, row.query, p.subs, body)
			}
			continue
		}
		if len(p.subs) != 1 || !strings.Contains(body, `"cacheMillis":10000`) {
			t.Errorf("%s %s: %+v %s", row.agent, row.query, p.subs, body)
			continue
		}
		limit := 0
		if strings.Contains(strings.ToLower(row.agent), "go") {
			limit = goPacket
		}
		if got, want := p.subs[0], (registry.Subscriber{
			Service: registry.NewServiceKey("", "", "orders"), Clusters: "c1,c2", Addr: netip.MustParseAddrPort(row.want),
			Agent: row.agent, App: "shop", Grouped: row.agent == java, MaxPacket: limit,
			Named: !strings.HasPrefix(row.want, "10.1.1.1:"),
		}); got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
}

func TestSubscribe_RefusedOrBadPort(t *testing.T) {
	p := &fakePusher{refuse: true}
	s, _ := newTestServer(t, func(o *Options) { o.Pusher = p })
	if _, body := askAs(s, "/nacos/v1/ns/instance/list?serviceName=orders&udpPort=7000", "Nacos-Java-Client:v1.4.7"); !strings.Contains(body, `"cacheMillis":3000`) {
		t.Errorf("a refused subscriber is told %s", body)
	}
	if code, body := askAs(s, "/nacos/v1/ns/instance/list?serviceName=orders&udpPort=x", "curl/8"); code != 400 || body != `caused: For input string: "x";` {
		t.Errorf("%d %s", code, body)
	}
}

func TestPushList_IsTheListOfThatKindOfClient(t *testing.T) {
	s, f := newTestServer(t, nil)
	key := registry.NewServiceKey("", "", "orders")
	_, _ = f.Propose(t.Context(), registry.Register{Service: key, Spec: registry.Spec{
		Address: registry.Address{Cluster: "c1", IP: "10.0.0.1", Port: 80}, Enabled: true, Healthy: true, Weight: 1, Ephemeral: true}})
	svc := f.Service(key)
	grouped := string(s.PushList(svc, "", true))
	for _, part := range []string{`"dom":"DEFAULT_GROUP@@orders"`, `"cacheMillis":10000`, `"ip":"10.0.0.1"`} {
		if !strings.Contains(grouped, part) {
			t.Errorf("%s lacks %s", grouped, part)
		}
	}
	if plain := string(s.PushList(svc, "c2,x", false)); !strings.Contains(plain, `"dom":"orders"`) ||
		!strings.Contains(plain, `"clusters":"c2,x"`) || !strings.Contains(plain, `"hosts":[]`) {
		t.Error(plain)
	}
	gone := &registry.Service{Key: key, Stamp: 42}
	if empty := string(s.PushList(gone, "", true)); !strings.Contains(empty, `"hosts":[]`) || !strings.Contains(empty, `"lastRefTime":42`) {
		t.Error(empty)
	}
	if again := string(s.PushList(svc, "", true)); again != grouped {
		t.Error("the stand-in for a service that is gone was kept")
	}
}

func TestSubscribers_RowsAndPages(t *testing.T) {
	p := &fakePusher{}
	s, _ := newTestServer(t, func(o *Options) { o.Pusher = p })
	for _, addr := range []string{"10.0.0.1:1", "10.0.0.1:1", "10.0.0.2:1", "[::1]:9"} {
		p.subs = append(p.subs, registry.Subscriber{Service: registry.NewServiceKey("", "", "orders"),
			Addr: netip.MustParseAddrPort(addr), Agent: "a", Clusters: strings.Repeat("c", len(p.subs))})
	}
	_, body := askAs(s, "/nacos/v1/ns/service/subscribers?serviceName=orders&pageNo=2&pageSize=2", "curl")
	if body != `{"subscribers":[{"addrStr":"[::1]:9","agent":"a","app":"","ip":"::1","namespaceId":"public","serviceName":"DEFAULT_GROUP@@orders"}],"count":3}` {
		t.Error(body)
	}
	if !p.all || p.query != (registry.SubscriberQuery{Namespace: "public", Group: "DEFAULT_GROUP", Name: "orders"}) {
		t.Errorf("%+v %t", p.query, p.all)
	}
	if _, body := askAs(s, "/nacos/v1/ns/service/subscribers?serviceName=orders&pageNo=9&aggregation=false", "curl"); p.all || body != `{"subscribers":[],"count":3}` {
		t.Error(body)
	}
	if code, body := askAs(s, "/nacos/v1/ns/service/subscribers", "curl"); code != 400 || body != "caused: Param 'serviceName' is required.;" {
		t.Errorf("%d %s", code, body)
	}
}

func TestPushState_Forms(t *testing.T) {
	p := &fakePusher{}
	s, _ := newTestServer(t, func(o *Options) { o.Pusher = p })
	for target, want := range map[string]string{
		"/operator/push/state":            `{"succeed":0,"total":0,"ratio":0.0,"reset":false}`,
		"/ops/push/state?detail=true":     `{"succeed":0,"total":0,"data":[],"ratio":0.0,"reset":false}`,
		"/operator/push/state?reset=true": `{"succeed":0,"total":0,"ratio":0.0,"reset":true}`,
	} {
		if _, body := askAs(s, nsPrefix+target, "curl"); body != want {
			t.Errorf("%s: %s", target, body)
		}
	}
	p.counts = registry.PushCounts{Total: 4, Failed: 1, Waiting: []string{"a \"b\""}}
	if _, body := askAs(s, nsPrefix+"/operator/push/state?detail=1", "curl"); body != `{"succeed":3,"total":4,"data":["a \"b\""],"ratio":0.75,"reset":false}` {
		t.Error(body)
	}
	p.counts = registry.PushCounts{Total: 1, Failed: 2} // sent before a reset
	if _, body := askAs(s, nsPrefix+"/operator/push/state", "curl"); !strings.Contains(body, `"succeed":0,"total":1,"ratio":0.0`) {
		t.Error(body)
	}
}
