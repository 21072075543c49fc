package httpapi

import (
	"net/http"
	"net/netip"
	"testing"

	"github.com/rollcall-io/rollcall/registry"
)

// The list holds the subscribers of one service, where the query that finds them matches
// parts of names, and one row for an address with two lists of clusters.
func TestV2Subscribers(t *testing.T) {
	t.Parallel()
	sub := func(name, addr, clusters string) registry.Subscriber {
		return registry.Subscriber{Service: registry.NewServiceKey("", "", name), Addr: netip.MustParseAddrPort(addr), Clusters: clusters}
	}
	p := &fakePusher{subs: []registry.Subscriber{
		sub("svc", "10.0.0.1:5000", ""), sub("svc", "10.0.0.1:5000", "a"), sub("svc", "10.0.0.2:5001", ""), sub("svc-2", "10.0.0.3:5002", ""),
	}}
	s, _ := newTestServer(t, func(o *Options) { o.Pusher = p })
	wantAnswer(t, do(s, http.MethodGet, v2NsPrefix+"/client/service/subscriber/list?serviceName=svc"), 200,
		`{"code":0,"message":"success","data":[{"clientId":"10.0.0.1:5000#true","ip":"10.0.0.1","port":5000},{"clientId":"10.0.0.2:5001#true","ip":"10.0.0.2","port":5001}]}`)
}
