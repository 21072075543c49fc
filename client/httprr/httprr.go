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

// Choose picks an instance of a service for a request; nil means that there is none. It is
// called by the goroutine of the request, and again after a connection could not be made,
// then with a snapshot that lacks the instances that were tried. It must be safe for
// concurrent use and must not block.
type Choose func(*client.Snapshot, *http.Request) *client.Instance

// Options say how requests are sent. The zero value will do.
type Options struct {
	// Group of all services; client.DefaultGroup when empty.
	Group string
	// Cluster is preferred when it has instances that may get traffic; none when empty.
	// It counts for the choice by weight only.
	Cluster string
	// Choose replaces the choice by weight.
	Choose Choose
	// Base sends what has got an address; http.DefaultTransport when nil. It must be safe
	// for concurrent use, as every RoundTripper. Close leaves it alone.
	Base http.RoundTripper
	// Attempts bounds the instances that are tried for a request whose connection could
	// not be made; 3 when 0 or less. A request that may have reached an instance is not
	// repeated.
	Attempts int
	// MaxServices bounds the services that are followed at once; 1,000 when 0 or less. One
	// more takes the place of the one that was not called for longest, so that hosts out
	// of a stranger's requests use up nothing.
	MaxServices int
}

// Transport is the RoundTripper, safe for concurrent use. Each service that is called is
// followed until Close, or until MaxServices others were called after it.
type Transport struct {
	c    *client.Client
	opts Options

	mu       sync.Mutex
	calls    uint64 // so far
	services map[string]*called
	closed   bool
}

// called is a service with the number of its newest call.
type called struct {
	*client.Service
	last uint64
}

// New makes a RoundTripper over a client, which must live as long. It does not block and
// cannot fail.
func New(c *client.Client, o Options) *Transport {
	if o.Base == nil {
		o.Base = http.DefaultTransport
	}
	if o.Attempts <= 0 {
		o.Attempts = 3
	}
	if o.MaxServices <= 0 {
		o.MaxServices = 1000
	}
	if o.Choose == nil {
		cluster := o.Cluster
		o.Choose = func(s *client.Snapshot, _ *http.Request) *client.Instance { return s.PickNear(cluster) }
	}
	return &Transport{c: c, opts: o, services: map[string]*called{}}
}

// RoundTrip sends a request with the scheme rollcall to an instance of the service that
// its host names, and every other one as it is. An instance whose metadata says
// "secure":"true" is called with https. Host keeps the service's name unless the request
// sets one.
//
// The first call of a service waits for its list, for Options.Timeout of the client at
// most; when no server gives one, so does the next. After that only the base blocks. The
// request's context ends both.
//
// Errors, for errors.Is and errors.As, inside the *url.Error of http.Client: no instance
// is client.ErrNoInstance, joined to the failures of those that were tried; those of
// client.Follow; client.ErrClosed after Close; those of the base. The request's body is
// closed in any case.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Scheme != Scheme {
		return t.opts.Base.RoundTrip(r)
	}
	service, err := t.service(r.Context(), r.URL.Host)
	if err != nil {
		if r.Body != nil {
			err = errors.Join(err, r.Body.Close())
		}
		return nil, err
	}
	body := hold(r)
	resp, err := t.attempt(service.Snapshot(), r, body)
	body.letGo(err != nil)
	return resp, err
}

// attempt tries one instance after the other while no connection can be made.
func (t *Transport) attempt(s *client.Snapshot, r *http.Request, body *heldBody) (*http.Response, error) {
	var last error
	for range t.opts.Attempts {
		i := t.opts.Choose(s, r)
		if i == nil {
			return nil, nobody(r.URL.Host, last)
		}
		resp, err := t.opts.Base.RoundTrip(address(r, i, body))
		if err == nil || !neverSent(err) || body.touched() || r.Context().Err() != nil {
			return resp, err
		}
		if last == nil {
			last = err
		} else {
			last = fmt.Errorf("%w; %w", last, err)
		}
		s = s.Without(i)
	}
	return nil, last
}

// nobody is the error of a service with no instance, or none that is left.
func nobody(service string, tried error) error {
	if tried == nil {
		return fmt.Errorf("%s: %w", service, client.ErrNoInstance)
	}
	return fmt.Errorf("%s: %w is left: %w", service, client.ErrNoInstance, tried)
}

// address is the request as it goes to an instance.
func address(r *http.Request, i *client.Instance, body *heldBody) *http.Request {
	sent := r.Clone(r.Context())
	sent.URL.Scheme, sent.URL.Host = "http", i.Addr()
	if i.Metadata["secure"] == "true" {
		sent.URL.Scheme = "https"
	}
	if sent.Host == "" {
		sent.Host = r.URL.Host
	}
	if body != nil {
		sent.Body = body
	}
	return sent
}

// neverSent tells whether the connection could not even be made.
func neverSent(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}

// service is the followed service of that name. Follow is called without the lock.
func (t *Transport) service(ctx context.Context, name string) (*client.Service, error) {
	if s, err := t.known(name); s != nil || err != nil {
		return s, err
	}
	s, err := t.c.Follow(ctx, client.ServiceName{Group: t.opts.Group, Name: name})
	if err != nil {
		return nil, err
	}
	if other, err := t.known(name); other != nil || err != nil { // another call was faster
		s.Close()
		return other, err
	}
	return t.keep(name, s), nil
}

// known is nil for a service that is not followed yet.
func (t *Transport) known(name string) (*client.Service, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return nil, client.ErrClosed
	}
	at := t.services[name]
	if at == nil {
		return nil, nil
	}
	t.calls++
	at.last = t.calls
	return at.Service, nil
}

// keep puts a service in, and takes out the one that was not called for longest when
// there are too many. Who still has that one reads the last that was known.
func (t *Transport) keep(name string, s *client.Service) *client.Service {
	t.mu.Lock()
	defer t.mu.Unlock()
	if other := t.services[name]; other != nil || t.closed {
		s.Close()
		if other != nil {
			return other.Service
		}
		return s // closed with all others: it is good for this one request
	}
	for len(t.services) >= t.opts.MaxServices {
		oldest := ""
		for n, at := range t.services {
			if oldest == "" || at.last < t.services[oldest].last {
				oldest = n
			}
		}
		t.services[oldest].Close()
		delete(t.services, oldest)
	}
	t.calls++
	t.services[name] = &called{s, t.calls}
	return s
}

// Close stops following the services. Requests that are under way go on, new ones fail
// with client.ErrClosed. It does not block, and closing twice does nothing. Neither the
// client nor the base is closed.
func (t *Transport) Close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	for name, s := range t.services {
		s.Close()
		delete(t.services, name)
	}
}
