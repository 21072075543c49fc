package httpapi

import (
	"context"
	"net/http"
	"net/netip"
	"strconv"
	"strings"

	"github.com/rollcall-io/rollcall/registry"
)

// Pusher tells clients of changes by UDP. All methods are safe for concurrent use;
// Subscribers and Counts wait for other nodes, as long as ctx at most.
type Pusher interface {
	// Subscribe adds a subscriber or renews it and tells whether it will be pushed to.
	// told is the service as the answer shows it, nil for an unknown one.
	Subscribe(s registry.Subscriber, told *registry.Service) bool
	// Subscribers are those that a query asks for, in order; of this node or of all.
	Subscribers(ctx context.Context, q registry.SubscriberQuery, everywhere bool) []registry.Subscriber
	// Counts are the pushes of all nodes; reset sets them to zero after reading.
	Counts(ctx context.Context, reset bool) registry.PushCounts
}

var pushRoutes = []route{
	{http.MethodGet, nsPrefix + "/service/subscribers", scans, (*Server).subscribers},
	{http.MethodGet, nsPrefix + "/operator/push/state", adminReads, (*Server).pushState},
	{http.MethodGet, nsPrefix + "/ops/push/state", adminReads, (*Server).pushState},
}

// goPacket is what the Go client 1.x reads of a datagram.
const goPacket = 4024

// subscribe makes the client of a list request a subscriber, when it asks for it with a
// udpPort and is of a kind that understands pushes.
func (s *Server) subscribe(r *request, key registry.ServiceKey, clusters string, told *registry.Service) (granted bool, err error) {
	text := r.optional("udpPort", "")
	if text == "" {
		return false, nil
	}
	port, err := integer(text)
	if err != nil {
		return false, err
	}
	header, agent := r.agentHeader()
	if port <= 0 || port > 65535 || s.opts.Pusher == nil || !agent.pushable() {
		return false, nil
	}
	ip, named, found := r.pushTarget()
	if !found {
		return false, nil
	}
	sub := registry.Subscriber{
		Service: key, Clusters: clusters, Addr: netip.AddrPortFrom(ip, uint16(port)),
		Agent: header, App: r.optional("app", ""), Grouped: agent.grouped(), Named: named,
	}
	if agent.kind == agentGo {
		sub.MaxPacket = goPacket
	}
	return s.opts.Pusher.Subscribe(sub, told), nil
}

// pushTarget is where the client listens: clientIP, or where the request came from when
// that is no address of a single host (some clients send the text of an error there).
// named tells that it is not where the request came from.
func (r *request) pushTarget() (ip netip.Addr, named, found bool) {
	peer, err := netip.ParseAddrPort(r.gin.Request.RemoteAddr)
	from := peer.Addr().Unmap()
	if ip, err := netip.ParseAddr(r.optional("clientIP", "")); err == nil && single(ip) {
		return ip.Unmap(), ip.Unmap() != from, true
	}
	return from, false, err == nil
}

// single tells whether an address names one host: what is sent to many is never ours.
func single(ip netip.Addr) bool {
	return !ip.IsUnspecified() && !ip.IsMulticast() && ip.Unmap() != netip.AddrFrom4([4]byte{255, 255, 255, 255})
}

// PushList is the list of a service as a push carries it, in shared bytes.
func (s *Server) PushList(service *registry.Service, clusters string, grouped bool) []byte {
	view := listView{clusters: clusters, grouped: grouped, cacheMillis: s.opts.Reader.Switches().DefaultPushCacheMillis}
	// What is not published, as the stand-in for a service that is gone, is not kept.
	if s.opts.Reader.Service(service.Key) != service || !view.cacheable(service) {
		return appendList(nil, service, view, checksumOf(service))
	}
	return s.lists.rendered(service, view).bytes
}

// subscribers is GET /service/subscribers: who gets pushes of the services whose group
// and name contain those asked for, of all nodes unless aggregation is not true.
func (s *Server) subscribers(r *request) error {
	key, err := r.requiredService()
	if err != nil {
		return err
	}
	pageNo, pageSize := lenientInteger(r.optional("pageNo", "1")), lenientInteger(r.optional("pageSize", "1000"))
	everywhere := strings.EqualFold(r.optional("aggregation", "true"), "true")
	var list []registry.Subscriber
	if s.opts.Pusher != nil {
		query := registry.SubscriberQuery{Namespace: key.Namespace, Group: key.Group(), Name: key.Name()}
		list = oneRowEach(s.opts.Pusher.Subscribers(r.gin.Request.Context(), query, everywhere))
	}
	from, to, err := pageOf(len(list), pageNo, pageSize)
	if err != nil {
		return err
	}
	b := append(r.buffer(), `{"subscribers":[`...)
	for i, sub := range list[from:to] {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendString(append(b, `{"addrStr":`...), sub.Addr.String())
		b = appendString(append(b, `,"agent":`...), sub.Agent)
		b = appendString(append(b, `,"app":`...), sub.App)
		b = appendString(append(b, `,"ip":`...), sub.Addr.Addr().String())
		b = appendString(append(b, `,"namespaceId":`...), sub.Service.Namespace)
		b = appendString(append(b, `,"serviceName":`...), sub.Service.Grouped)
		b = append(b, '}')
	}
	b = appendInt(append(b, `],"count":`...), int64(len(list)))
	return r.json(append(b, '}'))
}

// oneRowEach keeps one row for each service, address and agent of an ordered list: two
// lists of clusters are one row.
func oneRowEach(list []registry.Subscriber) []registry.Subscriber {
	kept := list[:0]
	for _, sub := range list {
		if n := len(kept); n > 0 && kept[n-1].Service == sub.Service && kept[n-1].Addr == sub.Addr && kept[n-1].Agent == sub.Agent {
			continue
		}
		kept = append(kept, sub)
	}
	return kept
}

// pushState is GET /operator/push/state: how the pushes of all nodes went.
func (s *Server) pushState(r *request) error {
	detail, err := r.boundFlag("detail")
	if err != nil {
		return err
	}
	reset, err := r.boundFlag("reset")
	if err != nil {
		return err
	}
	var c registry.PushCounts
	if s.opts.Pusher != nil {
		c = s.opts.Pusher.Counts(r.gin.Request.Context(), reset)
	}
	// A push that was sent before a reset may fail after it.
	succeed, ratio := c.Total-min(c.Failed, c.Total), 0.0
	if c.Total > 0 {
		ratio = float64(succeed) / float64(c.Total)
	}
	b := appendInt(append(r.buffer(), `{"succeed":`...), int64(succeed))
	b = appendInt(append(b, `,"total":`...), int64(c.Total))
	if detail {
		b = append(b, `,"data":[`...)
		for i, text := range c.Waiting {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendString(b, text)
		}
		b = append(b, ']')
	}
	b = appendFloat(append(b, `,"ratio":`...), ratio)
	b = strconv.AppendBool(append(b, `,"reset":`...), reset)
	return r.json(append(b, '}'))
}
