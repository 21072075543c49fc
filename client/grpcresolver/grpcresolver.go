// Package grpcresolver lets gRPC clients dial services by name:
//
//	conn, err := grpc.NewClient("rollcall:///orders", grpc.WithResolvers(grpcresolver.New(c)), …)
//
// The target is rollcall:///SERVICE, rollcall:///GROUP/SERVICE, or with /CLUSTER behind
// that. Every instance that may get traffic becomes an address, and changes reach the
// connection as they happen.
package grpcresolver

import (
	"strings"
	"sync"

	"google.golang.org/grpc/attributes"
	"google.golang.org/grpc/resolver"

	"github.com/rollcall-io/rollcall/client"
)

// Scheme is that of targets.
const Scheme = "rollcall"

// instanceKey is under which an endpoint carries its instance.
type instanceKey struct{}

// Instance is the instance behind an endpoint, for balancers that look at weights and
// metadata; nil for an endpoint of another resolver.
func Instance(e resolver.Endpoint) *client.Instance {
	i, _ := e.Attributes.Value(instanceKey{}).(*client.Instance)
	return i
}

type builder struct{ c *client.Client }

// New makes the builder for grpc.WithResolvers. The client must live as long as the
// connections. Nothing is registered globally.
func New(c *client.Client) resolver.Builder { return builder{c} }

// Scheme is the builder's scheme.
func (builder) Scheme() string { return Scheme }

// Build begins to follow the target's service. It does not wait for a list: until the
// first one the connection is connecting.
func (b builder) Build(t resolver.Target, cc resolver.ClientConn, _ resolver.BuildOptions) (resolver.Resolver, error) {
	name, clusters, err := parse(t.Endpoint())
	if err != nil {
		return nil, err
	}
	s, err := b.c.FollowLazy(name, clusters...)
	if err != nil {
		return nil, err
	}
	r := &following{service: s, cc: cc}
	r.stop = s.Subscribe(func(client.Event) { r.update() })
	return r, nil
}

func parse(endpoint string) (name client.ServiceName, clusters []string, err error) {
	parts := strings.Split(endpoint, "/")
	switch len(parts) {
	case 1:
		name.Name = parts[0]
	case 3:
		clusters = parts[2:]
		fallthrough
	case 2:
		name.Group, name.Name = parts[0], parts[1]
	}
	if name.Name == "" {
		err = &client.InvalidError{Field: "target", Value: endpoint, Reason: "must be rollcall:///SERVICE or rollcall:///GROUP/SERVICE[/CLUSTER]"}
	}
	return name, clusters, err
}

// following is one target.
type following struct {
	service *client.Service
	cc      resolver.ClientConn
	stop    func()

	mu     sync.Mutex // one update at a time, none after Close
	closed bool
}

// update hands the present addresses to the connection. An empty list is an error there,
// so that calls fail instead of waiting for ever.
func (r *following) update() {
	r.mu.Lock()
	defer r.mu.Unlock()
	snapshot := r.service.Snapshot()
	switch {
	case r.closed || snapshot.Source() == client.FromNowhere:
	case len(snapshot.Healthy()) == 0:
		r.cc.ReportError(client.ErrNoInstance)
	default:
		var state resolver.State
		for _, i := range snapshot.Healthy() {
			state.Endpoints = append(state.Endpoints, resolver.Endpoint{
				Addresses: []resolver.Address{{Addr: i.Addr()}}, Attributes: attributes.New(instanceKey{}, i),
			})
		}
		_ = r.cc.UpdateState(state) // a refusal asks for ResolveNow, which asks the registry
	}
}

// ResolveNow asks for the list as it is now, in the background.
func (r *following) ResolveNow(resolver.ResolveNowOptions) { r.service.Hint() }

// Close ends the updates and the following.
func (r *following) Close() {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.stop()
	r.service.Close()
}
