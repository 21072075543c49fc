// Package grpcresolver lets gRPC clients dial services by name:
//
//	conn, err := grpc.NewClient("rollcall:///orders", grpc.WithResolvers(grpcresolver.New(c)), …)
//
// The target is rollcall:///SERVICE, rollcall:///GROUP/SERVICE, or with /CLUSTER behind
// that. Every instance that may get traffic becomes an address, and changes reach the
// connection as they happen.
package grpcresolver

import (
	"context"
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
// metadata; nil for an endpoint of another resolver. It is shared: do not change it. It
// does not block and may be called from several goroutines.
func Instance(e resolver.Endpoint) *client.Instance {
	i, _ := e.Attributes.Value(instanceKey{}).(*client.Instance)
	return i
}

type builder struct{ c *client.Client }

// New makes the builder for grpc.WithResolvers. The client must live as long as the
// connections, which know the instances as they were when it is closed before. One
// builder serves any number of connections, from several goroutines. Nothing is
// registered globally, nothing blocks.
func New(c *client.Client) resolver.Builder { return builder{c} }

// Scheme is the builder's scheme, the constant of that name.
func (builder) Scheme() string { return Scheme }

// Build begins to follow the target's service; gRPC calls it. It does not wait for a
// list: until the first one the connection is connecting. When no server gives one within
// Options.Timeout of the client, calls fail with codes.Unavailable instead of waiting on,
// until a list comes. Errors: *client.InvalidError for the target, client.ErrClosed.
func (b builder) Build(t resolver.Target, cc resolver.ClientConn, _ resolver.BuildOptions) (resolver.Resolver, error) {
	name, clusters, err := parse(t.Endpoint())
	if err != nil {
		return nil, err
	}
	s, err := b.c.FollowLazy(name, clusters...)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	r := &following{service: s, cc: cc, cancel: cancel}
	s.Subscribe(func(client.Event) { r.update() })
	r.first.Go(func() { r.await(ctx, b.c, clusters) })
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
	cancel  context.CancelFunc
	first   sync.WaitGroup // of await, which Close waits for

	mu     sync.Mutex // one update at a time, none after Close
	closed bool
}

// await tells the connection when the first attempt to get a list fails: a call would
// wait until its deadline otherwise, and some have none.
func (r *following) await(ctx context.Context, c *client.Client, clusters []string) {
	s, err := c.Follow(ctx, r.service.Name(), clusters...)
	if err == nil {
		s.Close()
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.closed && r.service.Snapshot().Source() == client.FromNowhere {
		r.cc.ReportError(err)
	}
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

// ResolveNow asks for the list as it is now, in the background. It does not block.
func (r *following) ResolveNow(resolver.ResolveNowOptions) { r.service.Hint() }

// Close ends the updates and the following; gRPC calls it. No update comes afterwards.
func (r *following) Close() {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.cancel()
	r.service.Close()
	r.first.Wait()
}
