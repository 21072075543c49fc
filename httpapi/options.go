package httpapi

import (
	"context"
	"errors"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/rollcall-io/rollcall/auth"
	"github.com/rollcall-io/rollcall/registry"
)

// Reader reads the state of this node. Services and instances that it returns are
// immutable. All methods are safe for concurrent use; only WaitApplied blocks.
type Reader interface {
	// Service is the service of a key, nil when there is none.
	Service(registry.ServiceKey) *registry.Service
	// Instance is a registered instance, nil when there is none.
	Instance(registry.InstanceKey) *registry.Instance
	// Services are the services of a namespace in the order of their grouped names.
	Services(namespace string) []*registry.Service
	// NamespaceIDs are all namespaces in which something was ever registered.
	NamespaceIDs() []string
	// Namespaces are the records of namespaces made by hand.
	Namespaces() []registry.Namespace
	// Counts are the numbers of services and of instances.
	Counts() (services, instances int)
	// Switches are the replicated settings.
	Switches() registry.Switches
	// Accounts are the users, roles and permissions; the value is immutable.
	Accounts() *registry.Accounts
	// Applied is the Raft index up to which this node's state goes.
	Applied() uint64
	// WaitApplied returns when Applied has reached index, or ErrTimeout with ctx.
	WaitApplied(ctx context.Context, index uint64) error
}

// Writer commits commands. Propose returns once the command is applied on this node;
// a refusal comes back as the error, a *registry.Error. It blocks until ctx ends at most.
type Writer interface {
	Propose(ctx context.Context, c registry.Command) (registry.Result, error)
}

// Beater takes beats. The strings of a Beat may share memory with the request: an
// implementation that keeps them longer than the call clones them. Beat bounds its
// own waiting and returns early when ctx ends.
type Beater interface {
	Beat(ctx context.Context, b registry.Beat) (registry.BeatReply, error)
}

// Cluster tells where this node stands in its cluster. All methods are safe for
// concurrent use; only ReadIndex blocks.
type Cluster interface {
	// Leader is the present leader, "" when none is known; self tells whether this
	// node is it. It is called for every answer and must be cheap.
	Leader() (id string, term uint64, self bool)
	// NodeID is the id of this node.
	NodeID() string
	// Ready is nil while the node has caught up with the cluster.
	Ready() error
	// LagMs is how far this node is behind the leader, in milliseconds.
	LagMs() int64
	// ReadIndex is the index that a read that starts now must have seen to be
	// linearizable.
	ReadIndex(ctx context.Context) (uint64, error)
	// Members are all nodes of the cluster.
	Members() []registry.Member
}

// Options configure a Server. Reader, Writer, Beater and Cluster are required; for
// the rest see DefaultOptions.
type Options struct {
	Reader  Reader
	Writer  Writer
	Beater  Beater
	Cluster Cluster
	// Pusher is nil on a node that pushes to nobody.
	Pusher Pusher
	// Watcher is nil on a node without watches.
	Watcher Watcher

	// Status tells how this node is; nil means the little that Cluster knows.
	Status func() registry.NodeStatus

	// Auth proves callers; nil means one with defaults over Reader's accounts. Enforce asks
	// every caller for an account with the permission that the route declares.
	Auth    *auth.Authority
	Enforce bool

	// Logger gets one line for each failure of ours; requests appear at debug only,
	// one in AccessLogEvery.
	Logger hclog.Logger
	// Metrics is where the Server registers its metrics and what /metrics shows.
	Metrics *prometheus.Registry

	// WriteTimeout bounds a write, from its request to its answer.
	WriteTimeout time.Duration
	// ReadTimeout bounds how long a read waits that asks for an index or for
	// linearizability.
	ReadTimeout time.Duration
	// MaxBody and MaxHeader bound a request's body and header in bytes.
	MaxBody int64
	// MaxBodies bounds the memory that all long bodies hold together, in bytes.
	MaxBodies int64
	// MaxAnswers bounds the memory that all long answers hold together while clients take
	// them, in bytes. One that would be over it is refused.
	MaxAnswers int64
	// MaxStreams bounds the memory that long events hold while clients take them, in bytes. A
	// stream that would be over it ends.
	MaxStreams int64
	MaxHeader  int
	// HeaderTimeout, RequestTimeout, AnswerTimeout and IdleTimeout bound how long a
	// client may take to send a header, to send a whole request, to take an answer,
	// and to stay connected without a request.
	HeaderTimeout, RequestTimeout, AnswerTimeout, IdleTimeout time.Duration
	// Heartbeat is how often a stream of events that has nothing to tell sends a comment.
	Heartbeat time.Duration
	// ListCacheBytes bounds the memory of rendered instance lists.
	ListCacheBytes int64
	// AccessLogEvery is the n of "one request in n is logged at debug"; 0 logs none.
	AccessLogEvery uint64
}

// DefaultOptions are the limits of a production node, without its collaborators.
func DefaultOptions() Options {
	return Options{
		Logger:         hclog.NewNullLogger(),
		WriteTimeout:   3 * time.Second,
		ReadTimeout:    3 * time.Second,
		MaxBody:        1 << 20,
		MaxBodies:      256 << 20,
		MaxAnswers:     256 << 20,
		MaxStreams:     256 << 20,
		MaxHeader:      64 << 10,
		HeaderTimeout:  10 * time.Second,
		RequestTimeout: 30 * time.Second,
		AnswerTimeout:  60 * time.Second,
		IdleTimeout:    120 * time.Second,
		Heartbeat:      15 * time.Second,
		ListCacheBytes: 64 << 20,
		AccessLogEvery: 100,
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
	need(o.Reader != nil, "no Reader")
	need(o.Writer != nil, "no Writer")
	need(o.Beater != nil, "no Beater")
	need(o.Cluster != nil, "no Cluster")
	need(o.Logger != nil, "no Logger")
	need(o.WriteTimeout > 0 && o.ReadTimeout > 0, "WriteTimeout and ReadTimeout must be positive")
	need(o.MaxBody > 0 && o.MaxBodies > 0 && o.MaxAnswers > 0 && o.MaxHeader > 0 && o.MaxStreams > 0,
		"MaxBody, MaxBodies, MaxAnswers, MaxHeader and MaxStreams must be positive")
	need(o.HeaderTimeout > 0 && o.RequestTimeout > 0 && o.AnswerTimeout > 0 && o.IdleTimeout > 0,
		"HeaderTimeout, RequestTimeout, AnswerTimeout and IdleTimeout must be positive")
	need(o.Heartbeat > 0, "Heartbeat must be positive")
	need(o.ListCacheBytes >= 0, "ListCacheBytes must not be negative")
	return errors.Join(errs...)
}
