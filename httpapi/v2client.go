package httpapi

import (
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/rollcall-io/rollcall/registry"
)

var v2ClientRoutes = []route{
	{http.MethodGet, v2NsPrefix + "/client/list", adminReads, (*Server).v2Clients},
	{http.MethodGet, v2NsPrefix + "/client", adminReads, (*Server).v2Client},
	{http.MethodGet, v2NsPrefix + "/client/publish/list", adminReads, (*Server).v2Published},
	{http.MethodGet, v2NsPrefix + "/client/subscribe/list", adminReads, (*Server).v2Subscribed},
	{http.MethodGet, v2NsPrefix + "/client/service/publisher/list", reads, (*Server).v2Publishers},
	{http.MethodGet, v2NsPrefix + "/client/service/subscriber/list", reads, (*Server).v2Subscribers},
}

// A client of the open API that speaks HTTP is one address and one kind, called
// `ip:port#true` when it is ephemeral. It exists while an instance of that address does.
func clientID(in *registry.Instance) string {
	return in.IP + ":" + strconv.Itoa(int(in.Port)) + "#" + strconv.FormatBool(in.Ephemeral)
}

// eachInstance calls f for every instance of every namespace, until f says false.
func (s *Server) eachInstance(f func(*registry.Service, *registry.Instance) bool) {
	for _, id := range s.opts.Reader.NamespaceIDs() {
		for _, service := range s.opts.Reader.Services(id) {
			for _, in := range service.Instances() {
				if !f(service, in) {
					return
				}
			}
		}
	}
}

// v2Clients is GET /client/list: the ids of all clients, sorted.
func (s *Server) v2Clients(r *request) error {
	var ids []string
	s.eachInstance(func(_ *registry.Service, in *registry.Instance) bool {
		ids = append(ids, clientID(in))
		return true
	})
	slices.Sort(ids)
	b := append(r.v2Begin(), '[')
	for i, id := range slices.Compact(ids) {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendString(b, id)
	}
	return r.json(append(b, "]}"...))
}

// v2Client is GET /client: one client. It was last updated when the newest of its
// services changed.
func (s *Server) v2Client(r *request) error {
	id, err := r.v2ClientID()
	if err != nil {
		return err
	}
	var found *registry.Instance
	var updated int64
	s.eachInstance(func(service *registry.Service, in *registry.Instance) bool {
		if id.is(in) {
			found, updated = in, max(updated, service.Stamp)
		}
		return true
	})
	if found == nil {
		return noClient(id)
	}
	b := appendString(append(r.v2Begin(), `{"clientId":`...), clientID(found))
	b = appendBool(append(b, `,"ephemeral":`...), found.Ephemeral)
	b = appendInt(append(b, `,"lastUpdatedTime":`...), updated)
	b = appendString(append(b, `,"clientType":"ipPort","clientIp":`...), found.IP)
	b = appendString(append(b, `,"clientPort":`...), strconv.Itoa(int(found.Port)))
	return r.json(append(b, "}}"...))
}

// wantedClient is the client that a request names, its text as it came.
type wantedClient struct {
	text      string
	ip        string
	port      uint16
	ephemeral bool
	valid     bool
}

func (w wantedClient) is(in *registry.Instance) bool {
	return w.valid && in.IP == w.ip && in.Port == w.port && in.Ephemeral == w.ephemeral
}

func (r *request) v2ClientID() (w wantedClient, err error) {
	w.text = r.optional("clientId", "")
	if w.text == "" {
		return w, v2Unbound("clientId")
	}
	address, kind, hasKind := strings.Cut(w.text, "#")
	at := strings.LastIndexByte(address, ':')
	if !hasKind || at < 0 || kind != "true" && kind != "false" {
		return w, nil
	}
	n, err := port(address[at+1:])
	if err != nil {
		return w, nil
	}
	w.ip, w.port, w.ephemeral, w.valid = address[:at], n, kind == "true", true
	return w, nil
}

func noClient(w wantedClient) error {
	return v2Error(http.StatusNotFound, codeNotFound, "clientId [ "+shorten(w.text)+" ] not exist")
}

// v2Published is GET /client/publish/list: what a client has registered.
func (s *Server) v2Published(r *request) error {
	id, err := r.v2ClientID()
	if err != nil {
		return err
	}
	b := append(r.v2Begin(), '[')
	n := 0
	s.eachInstance(func(service *registry.Service, in *registry.Instance) bool {
		if !id.is(in) {
			return true
		}
		if n++; n > 1 {
			b = append(b, ',')
		}
		b = appendString(append(b, `{"namespace":`...), service.Key.Namespace)
		b = appendString(append(b, `,"group":`...), service.Key.Group())
		b = appendString(append(b, `,"serviceName":`...), service.Key.Name())
		b = append(appendPublisher(append(b, `,"registeredInstance":{`...), in), "}}"...)
		return true
	})
	if n == 0 {
		return noClient(id)
	}
	return r.json(append(b, "]}"...))
}

func appendPublisher(b []byte, in *registry.Instance) []byte {
	b = appendString(append(b, `"ip":`...), in.IP)
	b = appendInt(append(b, `,"port":`...), int64(in.Port))
	return appendString(append(b, `,"cluster":`...), in.Cluster)
}

// v2Subscribed is GET /client/subscribe/list. Clients that register by HTTP subscribe by
// another address, their UDP port's, and so have no subscriptions under their id.
func (s *Server) v2Subscribed(r *request) error {
	id, err := r.v2ClientID()
	if err != nil {
		return err
	}
	found := false
	s.eachInstance(func(_ *registry.Service, in *registry.Instance) bool {
		found = id.is(in)
		return !found
	})
	if !found {
		return noClient(id)
	}
	return r.json(append(r.v2Begin(), "[]}"...))
}

// v2Publishers is GET /client/service/publisher/list. As in Nacos both ip and port must
// match, so that a request without them finds none.
func (s *Server) v2Publishers(r *request) error {
	key, err := r.v2Service(v2Unbound("serviceName"))
	if err != nil {
		return err
	}
	ephemeral, err := r.v2Flag("ephemeral", true)
	if err != nil {
		return err
	}
	ip, portText := r.optional("ip", ""), r.optional("port", "")
	b := append(r.v2Begin(), '[')
	if service := s.opts.Reader.Service(key); service != nil {
		n := 0
		for _, in := range service.Instances() {
			if in.IP != ip || strconv.Itoa(int(in.Port)) != portText || in.Ephemeral != ephemeral {
				continue
			}
			if n++; n > 1 {
				b = append(b, ',')
			}
			b = appendPublisher(append(b, '{'), in)
			b = append(appendString(append(b, `,"clientId":`...), clientID(in)), '}')
		}
	}
	return r.json(append(b, "]}"...))
}

// v2Subscribers is GET /client/service/subscriber/list: who is pushed changes of exactly
// this service, by any node, one row for each address.
func (s *Server) v2Subscribers(r *request) error {
	key, err := r.v2Service(v2Unbound("serviceName"))
	if err != nil {
		return err
	}
	var list []registry.Subscriber
	if s.opts.Pusher != nil {
		query := registry.SubscriberQuery{Namespace: key.Namespace, Group: key.Group(), Name: key.Name()}
		list = s.opts.Pusher.Subscribers(r.gin.Request.Context(), query, true)
	}
	b := append(r.v2Begin(), '[')
	var last netip.AddrPort
	for _, sub := range list { // by service, then by address
		if sub.Service != key || sub.Addr == last {
			continue
		}
		if last.IsValid() {
			b = append(b, ',')
		}
		last = sub.Addr
		b = appendString(append(b, `{"clientId":`...), last.String()+"#true")
		b = appendString(append(b, `,"ip":`...), last.Addr().String())
		b = append(appendInt(append(b, `,"port":`...), int64(last.Port())), '}')
	}
	return r.json(append(b, "]}"...))
}
