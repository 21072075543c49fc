package push

import (
	"context"
	"errors"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/rollcall-io/rollcall/registry"
)

// State is the applied state of this node. Services that it returns are immutable.
type State interface {
	// Service is the service of a key, nil when there is none.
	Service(registry.ServiceKey) *registry.Service
	// DeletedStamp is the highest change stamp of a service that was deleted.
	DeletedStamp() int64
	// Switches are the replicated settings.
	Switches() registry.Switches
}

// Renderer builds lists in the form of each kind of client. It may return shared bytes:
// they are not modified. It is called by several goroutines.
type Renderer interface {
	// PushList is the list of a service as a push carries it; clusters is echoed as the
	// client wrote it, grouped says how the client calls the service.
	PushList(s *registry.Service, clusters string, grouped bool) []byte
}

// Peers asks the pushers of the cluster's other nodes. Ask returns when all have answered
// or ctx ends; those that did not answer are left out.
type Peers interface {
	Ask(ctx context.Context, question []byte) (answers [][]byte)
}

// Options configure a Pusher. State, Renderer and Current are required; for the rest
// see DefaultOptions.
type Options struct {
	State    State
	Renderer Renderer
	// Current tells whether this node has caught up with the cluster: while it is false
	// nothing is sent, and what changed meanwhile is sent afterwards.
	Current func() bool
	// Peers is nil on a node alone.
	Peers Peers

	Logger  hclog.Logger
	Metrics prometheus.Registerer

	// Addr is the UDP address that packets leave from and acknowledgements come to. An
	// empty host is all addresses of both families, port 0 any port.
	Addr string
	// Lease is how long a subscriber stays without a query. Nacos 1.4.7 has 10 s, yet its
	// Java client asks only each 60 s for a service that is empty.
	Lease time.Duration
	// AckTimeout is how long an acknowledgement is waited for, before the one retry and
	// after it.
	AckTimeout time.Duration
	// MinMerge and MaxMerge bound the time between two pushes of a service: the former
	// after a quiet time, from where it doubles up to the latter while changes go on.
	MinMerge, MaxMerge time.Duration
	// MaxSubscribers bounds the subscribers of this node, MaxPerAddr those at one address.
	MaxSubscribers, MaxPerAddr int
	// Senders is the number of goroutines that send.
	Senders int
	// PeerTimeout bounds a question to the other nodes.
	PeerTimeout time.Duration
}

// DefaultOptions are the limits of a production node, without its collaborators.
func DefaultOptions() Options {
	return Options{
		Logger: hclog.NewNullLogger(), Addr: ":0",
		Lease: 90 * time.Second, AckTimeout: 10 * time.Second,
		MinMerge: 20 * time.Millisecond, MaxMerge: 500 * time.Millisecond,
		MaxSubscribers: 100_000, MaxPerAddr: 5_000, Senders: 4, PeerTimeout: time.Second,
	}
}

// validate returns all that is wrong, joined.
func (o Options) validate() error {
	var errs []error
	need := func(ok bool, text string) {
		if !ok {
			errs = append(errs, errors.New(text))
		}
	}
	need(o.State != nil, "no State")
	need(o.Renderer != nil, "no Renderer")
	need(o.Current != nil, "no Current")
	need(o.Logger != nil, "no Logger")
	need(o.Lease > 0 && o.AckTimeout > 0 && o.PeerTimeout > 0, "Lease, AckTimeout and PeerTimeout must be positive")
	need(o.MinMerge > 0 && o.MaxMerge >= o.MinMerge, "MinMerge must be positive and not above MaxMerge")
	need(o.MaxSubscribers > 0 && o.MaxPerAddr > 0 && o.Senders > 0, "MaxSubscribers, MaxPerAddr and Senders must be positive")
	return errors.Join(errs...)
}
