// Package app puts a node together: state machine, Raft, leases and HTTP, in the order in
// which they start and stop. It is what cmd and the cluster tests embed; it decides
// nothing else.
//
// Goroutines of its own: the HTTP server's accept loop, the beat collector, the pusher
// and the watches, and with accounts their set-up, all in one group that Stop ends and waits for.
package app

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"sync/atomic"

	"github.com/hashicorp/go-hclog"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"github.com/rollcall-io/rollcall/auth"
	"github.com/rollcall-io/rollcall/fsm"
	"github.com/rollcall-io/rollcall/health"
	"github.com/rollcall-io/rollcall/httpapi"
	"github.com/rollcall-io/rollcall/push"
	"github.com/rollcall-io/rollcall/raftnode"
	"github.com/rollcall-io/rollcall/registry"
)

// Node is one node of the registry. Start and Stop are called once each; the other
// methods are safe for concurrent use after Start.
type Node struct {
	opts Options
	log  hclog.Logger

	metrics *prometheus.Registry

	state     *fsm.FSM
	raft      *raftnode.Node
	keeper    *health.Keeper
	pusher    *push.Pusher
	watches   *push.Watches
	api       *httpapi.Server
	authority *auth.Authority

	listener net.Listener
	server   *http.Server
	debug    *http.Server // nil unless DebugAddr is set
	// stopping tells Wait that the HTTP server's end was wanted.
	stopping atomic.Bool
	group    *errgroup.Group
	failed   context.Context // ends when something in group fails
	base     context.Context // parent of every request's context
	cancel   context.CancelFunc
}

// New checks the options and builds a node that does nothing yet. It opens the data
// directory, so that a second process on it is refused here.
func New(opts Options) (*Node, error) {
	if err := opts.Validate(); err != nil {
		return nil, err
	}
	log, err := newLogger(opts)
	if err != nil {
		return nil, err
	}
	if opts.Fatal == nil {
		opts.Fatal = os.Exit
	}
	n := &Node{opts: opts, log: log}
	if err := n.assemble(); err != nil {
		return nil, errors.Join(err, n.discard())
	}
	return n, nil
}

// assemble builds the parts. Raft and the keeper need each other; the keeper is reached
// through n, and nobody calls it before Start.
func (n *Node) assemble() (err error) {
	metrics := newMetrics(n.opts)
	n.metrics = metrics
	n.state = fsm.New(fsm.Options{Logger: n.log.Named("fsm"), Metrics: metrics, Fatal: n.fatalState})
	// Events are heard from the first entry on, those of the log at start included.
	if n.watches, err = n.newWatches(metrics); err != nil {
		return err
	}
	raftOpts, err := n.raftOptions(metrics)
	if err != nil {
		return err
	}
	if n.raft, err = raftnode.Open(raftOpts, n.state); err != nil {
		return err
	}
	healthOpts := health.DefaultOptions()
	healthOpts.Node, healthOpts.State, healthOpts.Cluster = n.raft.ID(), n.state, n.raft
	healthOpts.Peers = n.raft
	healthOpts.Logger, healthOpts.Registerer = n.log, metrics
	healthOpts.ScanInterval = n.opts.HealthScanInterval
	healthOpts.WallMs = func() int64 { return n.opts.wallClock().UnixMilli() }
	if n.keeper, err = health.New(healthOpts); err != nil {
		return err
	}
	if n.pusher, err = n.newPusher(metrics); err != nil {
		return err
	}
	apiOpts := httpapi.DefaultOptions()
	apiOpts.Reader, apiOpts.Writer, apiOpts.Beater, apiOpts.Cluster = n.state, n.raft, n.keeper, cluster{n.raft}
	apiOpts.Pusher, apiOpts.Watcher = n.pusher, watcher{n.watches}
	apiOpts.Logger, apiOpts.Metrics = n.log.Named("http"), metrics
	n.authority = auth.New(n.authOptions())
	apiOpts.Status = n.status
	apiOpts.Auth, apiOpts.Enforce = n.authority, n.opts.Auth
	n.api, err = httpapi.New(apiOpts)
	return err
}

func (n *Node) raftOptions(metrics prometheus.Registerer) (raftnode.Options, error) {
	o := raftnode.DefaultOptions()
	o.NodeID, o.DataDir = n.opts.NodeID, n.opts.DataDir
	o.PeerAddr, o.Advertise, o.HTTPAddr = n.opts.PeerAddr, n.opts.Advertise, n.opts.clientAddress()
	o.BootstrapExpect, o.Join = n.opts.BootstrapExpect, n.opts.Join
	o.ElectionTimeout, o.CommitTimeout = n.opts.ElectionTimeout, n.opts.commitTimeout(o.CommitTimeout)
	o.SnapshotInterval, o.SnapshotEntries = n.opts.SnapshotInterval, n.opts.SnapshotEntries
	o.TrailingLogs = n.opts.TrailingLogs
	o.OnBeats = func(ctx context.Context, b registry.BeatBatch) (registry.BeatAnswer, error) {
		return n.keeper.HandleBeats(ctx, b)
	}
	o.OnAsk = map[string]func(context.Context, []byte) ([]byte, error){
		pushTopic:             n.answerPush,
		raftnode.TopicSilent:  raftnode.AnswerSilent(func() registry.SilentNotes { return n.keeper.Silent() }),
		raftnode.TopicRenewed: raftnode.AnswerRenewed(func(refs []registry.LeaseRef) { n.keeper.Renewed(refs) }),
	}
	o.LeaderJobs = []raftnode.LeaderJob{
		func(ctx context.Context, term uint64) { n.keeper.Lead(ctx, term) },
		n.cleanEmptyServices,
	}
	o.Unchanged = n.unchanged
	o.Fatal = n.fatal
	o.Log, o.Metrics = n.log, metrics
	o.Listen, o.Dial = n.opts.ListenPeer, n.opts.DialPeer
	o.WallClock = n.opts.wallClock
	var err error
	if o.Secret, err = readSecret(n.opts.ClusterSecretFile); err != nil {
		return o, err
	}
	o.TLS, err = readTLS(n.opts)
	return o, err
}

// unchanged answers a registration that would change nothing from the applied state,
// refreshing its lease. raftnode asks it on a verified leader with nothing in flight for
// the key.
func (n *Node) unchanged(r registry.Register) (registry.Result, bool) {
	index := n.state.Applied()
	ref, same := n.state.Unchanged(r)
	if !same || ref.Number != 0 && !n.keeper.Renew(ref) {
		return registry.Result{}, false
	}
	return registry.Result{Index: index}, true
}

// Start opens the HTTP port, starts Raft and returns once both run, which may be long
// before the node is ready. After an error call Stop all the same.
func (n *Node) Start(ctx context.Context) error {
	listener, err := net.Listen("tcp", n.opts.HTTPAddr)
	if err != nil {
		return fmt.Errorf("listen for clients: %w (--http-addr chooses another address)", err)
	}
	n.listener = limitConnections(listener, n.opts.MaxConnections, n.metrics)
	n.base, n.cancel = context.WithCancel(context.WithoutCancel(ctx))
	n.group, n.failed = errgroup.WithContext(n.base)
	n.server = n.api.HTTPServer(n.base)
	n.log.Info("starting", n.opts.effective()...)
	if err := n.raft.Start(ctx); err != nil {
		return err
	}
	if err := n.startDebug(); err != nil {
		return err
	}
	n.state.Listen(n.keeper)
	n.state.Listen(n.pusher)
	n.group.Go(n.serveHTTP)
	if n.opts.Auth {
		n.group.Go(func() error { return n.setUpAccounts(n.base) })
	} else {
		n.log.Warn("accounts are off: whoever reaches the HTTP port may read and change everything (--auth turns them on)")
	}
	n.group.Go(func() error { return n.keeper.Run(n.base) })
	n.group.Go(func() error { return n.pusher.Run(n.base) })
	n.group.Go(func() error { return n.watches.Run(n.base) })
	return nil
}

func (n *Node) serveHTTP() error {
	err := n.server.Serve(n.listener)
	if n.stopping.Load() && errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return fmt.Errorf("serve clients on %s: %w", n.listener.Addr(), err)
}

// Wait blocks until ctx ends, which is no error, or until the node cannot go on.
func (n *Node) Wait(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case <-n.failed.Done():
		return context.Cause(n.failed)
	}
}

// HTTPAddr is the address on which clients are served, with the real port.
func (n *Node) HTTPAddr() string { return n.listener.Addr().String() }

// Raft, State and Keeper give tests the parts.
func (n *Node) Raft() *raftnode.Node { return n.raft }

// State is the node's replicated state.
func (n *Node) State() *fsm.FSM { return n.state }

// Keeper is the node's beat keeper.
func (n *Node) Keeper() *health.Keeper { return n.keeper }

func (n *Node) fatal(code int, err error) {
	n.log.Error("cannot go on", "err", err, "exit", code)
	n.opts.Fatal(code)
}

func (n *Node) fatalState(err error) { n.fatal(raftnode.ExitState, err) }
