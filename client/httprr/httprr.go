// Package httprr lets a net/http client call services by name: a RoundTripper for URLs
// such as rollcall://orders/items/1, which chooses an instance for each request.
package httprr

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"

	"github.com/rollcall-io/rollcall/client"
)

// Scheme is that of URLs whose host is a service.
const Scheme = "rollcall"

// Choose picks an instance of a service for a request; nil means that there is none.
type Choose func(*client.Snapshot, *http.Request) *client.Instance

// Options say how requests are sent.
type Options struct {
	// Group of all services; client.DefaultGroup when empty.
	Group string
	// Cluster is preferred when it has instances that may get traffic.
	Cluster string
	// Choose replaces the choice by weight. It must be safe for concurrent use.
	Choose Choose
	// Base sends what has got an address; http.DefaultTransport when nil.
	Base http.RoundTripper
	// Attempts bounds the instances that are tried for a request whose connection could
	// not be made; 3 when 0. A request that may have reached an instance is not repeated.
	Attempts int
}

// Transport is the RoundTripper. Each service that is called is followed until Close.
type Transport struct {
	c    *client.Client
	opts Options

	mu       sync.Mutex
	services map[string]*client.Service
	closed   bool
}

// New makes a RoundTripper over a client, which must live as long.
func New(c *client.Client, o Options) *Transport {
	if o.Base == nil {
		o.Base = http.DefaultTransport
	}
	if o.Attempts <= 0 {
		o.Attempts = 3
	}
	if o.Choose == nil {
		cluster := o.Cluster
		o.Choose = func(s *client.Snapshot, _ *http.Request) *client.Instance { return s.PickNear(cluster) }
	}
	return &Transport{c: c, opts: o, services: map[string]*client.Service{}}
}

// RoundTrip sends a request with the scheme rollcall to an instance of the service that
// its host names, and every other one as it is. An instance whose metadata says
// "secure":"true" is called with https. Host keeps the service's name unless the request
// sets one. The first call of a service waits for its list. Errors: client.ErrNoInstance,
// those of client.Follow, those of the base.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Scheme != Scheme {
		return t.opts.Base.RoundTrip(r)
	}
	service, err := t.service(r.Context(), r.URL.Host)
	if err != nil {
		closeBody(r)
		return nil, err
	}
	var last error
	tried := map[*client.Instance]bool{}
	for range t.opts.Attempts {
		i := t.opts.Choose(service.Snapshot(), r)
		if i == nil {
			last = errors.Join(last, fmt.Errorf("%s: %w", r.URL.Host, client.ErrNoInstance))
			break
		}
		if tried[i] {
			continue // no better choice this time
		}
		tried[i] = true
		sent, err := address(r, i)
		if err != nil {
			last = err
			break
		}
		resp, err := t.opts.Base.RoundTrip(sent)
		if err == nil || !neverSent(err) || r.Context().Err() != nil {
			return resp, err
		}
		last = err
	}
	closeBody(r)
	return nil, last
}

// address is the request as it goes to an instance. A body can be sent once more only
// when the request knows how to get it anew.
func address(r *http.Request, i *client.Instance) (*http.Request, error) {
	sent := r.Clone(r.Context())
	sent.URL.Scheme, sent.URL.Host = "http", i.Addr()
	if i.Metadata["secure"] == "true" {
		sent.URL.Scheme = "https"
	}
	if sent.Host == "" {
		sent.Host = r.URL.Host
	}
	if r.Body != nil && r.Body != http.NoBody && r.GetBody != nil {
		body, err := r.GetBody()
		if err != nil {
			return nil, err
		}
		sent.Body = body
	}
	return sent, nil
}

// neverSent tells whether the connection could not even be made.
func neverSent(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}

// closeBody keeps the promise of a RoundTripper to close the body on errors too.
func closeBody(r *http.Request) {
	if r.Body != nil {
		_ = r.Body.Close() // nobody reads it any more
	}
}

func (t *Transport) service(ctx context.Context, name string) (*client.Service, error) {
	t.mu.Lock()
	s, closed := t.services[name], t.closed
	t.mu.Unlock()
	switch {
	case closed:
		return nil, client.ErrClosed
	case s != nil:
		return s, nil
	}
	s, err := t.c.Follow(ctx, client.ServiceName{Group: t.opts.Group, Name: name})
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if other := t.services[name]; other != nil || t.closed {
		s.Close()
		if t.closed {
			return nil, client.ErrClosed
		}
		return other, nil
	}
	t.services[name] = s
	return s, nil
}

// Close stops following the services. Requests that are under way go on, new ones fail.
func (t *Transport) Close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	for name, s := range t.services {
		s.Close()
		delete(t.services, name)
	}
}
