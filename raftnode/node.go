package raftnode

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	"google.golang.org/grpc"

	"github.com/rollcall-io/rollcall/raftnode/identity"
	"github.com/rollcall-io/rollcall/raftnode/mux"
	"github.com/rollcall-io/rollcall/raftnode/store"
)

// Node is one member. Its methods are safe for concurrent use.
type Node struct {
	opts        Options
	fsm         FSM
	log         hclog.Logger
	m           *metrics
	id          string
	incarnation string
	advertise   string
	freeSpace   func(string) (uint64, error)
	started     time.Time

	store     *store.Store
	mux       *mux.Mux
	peers     *peers
	server    *grpc.Server
	proposer  *proposer
	forwarder *forwarder
	tracker   *tracker
	verifier  *coalescer
	reader    *coalescer
	disk      disk
	watch     transferWatch
	progress  progress
	formation formation
	joins     chan joinRequest
	holders   atomic.Int64
	warned    sync.Map // message -> time of the last line

	raft      atomic.Pointer[raft.Raft] // nil until the node has decided to run Raft
	transport *transport
	decided   atomic.Bool // the node has state, or is about to make some

	identMu sync.Mutex
	ident   identity.Identity

	termMu sync.Mutex
	term   *term // the present leadership, nil without one

	ctx      context.Context // of the background goroutines
	cancel   context.CancelFunc
	group    sync.WaitGroup
	stopping atomic.Bool   // PrepareStop was called
	done     chan struct{} // closed by Stop
	stopOnce sync.Once
	stopErr  error
}

// Open opens the data directory and the peer port, and decides who this node is. Start
// runs it, Stop closes it, also when it was never started. Errors: all that is wrong
// with the options; store.ErrLocked when another process has the directory; an identity
// that does not fit; a port that is taken.
func Open(opts Options, fsm FSM) (*Node, error) {
	if err := opts.Validate(); err != nil {
		return nil, fmt.Errorf("options: %w", err)
	}
	n := &Node{
		opts: opts, fsm: fsm, log: opts.Log, m: newMetrics(opts.Metrics), freeSpace: opts.FreeSpace,
		tracker: newTracker(), joins: make(chan joinRequest), done: make(chan struct{}), started: time.Now(),
	}
	if n.log == nil {
		n.log = hclog.NewNullLogger()
	}
	if n.freeSpace == nil {
		n.freeSpace = freeSpace
	}
	if n.opts.WallClock == nil {
		n.opts.WallClock = time.Now
	}
	n.ctx, n.cancel = context.WithCancel(context.Background())
	n.disk.minWrites, n.disk.minLead = opts.MinFreeWrites, opts.MinFreeLead
	n.watch.limit = max(2*opts.ElectionTimeout, 5*time.Second)
	if err := n.openStore(); err != nil {
		n.cancel()
		return nil, err
	}
	if err := n.openPort(); err != nil {
		n.cancel()
		return nil, errors.Join(err, n.store.Close())
	}
	n.assemble()
	return n, nil
}

// openStore opens the stores first: their lock keeps a second process from the
// identity file as well.
func (n *Node) openStore() error {
	s, err := store.Open(store.Options{
		Dir: n.opts.DataDir, Retain: 2, CacheEntries: 256, SizeStep: n.opts.TrailingBytes / 256, LockTimeout: 2 * time.Second,
		Fatal: n.storeFailed,
		Wrap:  n.opts.Disk, Observe: n.m.observeStore, Log: n.log.Named("snapshot"),
	})
	if err != nil {
		return n.advise(err)
	}
	n.store = s
	if err := n.identify(); err != nil {
		return errors.Join(n.advise(err), s.Close())
	}
	return nil
}

// openPort opens the peer port, unless the node has nothing to guard it with.
func (n *Node) openPort() error {
	n.advertise = n.opts.advertised()
	var l net.Listener
	if n.opts.open() {
		listen := n.opts.Listen
		if listen == nil {
			listen = func(address string) (net.Listener, error) { return net.Listen("tcp", address) }
		}
		var err error
		if l, err = listen(n.opts.PeerAddr); err != nil {
			return fmt.Errorf("open peer port: %w (--peer-addr chooses another)", err)
		}
		n.advertise = withPort(n.advertise, l.Addr())
	}
	n.mux = mux.New(mux.Options{
		Listener: l, Advertise: n.advertise, Secret: n.opts.Secret, TLS: n.opts.TLS,
		Self: n.identity, Admit: n.admits, Dial: n.opts.Dial, Log: n.log.Named("peer"), Refused: n.m.refused,
	})
	return nil
}

// withPort puts the real port into an address that asked for any.
func withPort(address string, real net.Addr) string {
	host, port, err := net.SplitHostPort(address)
	if err != nil || port != "0" {
		return address
	}
	_, port, err = net.SplitHostPort(real.String())
	if err != nil {
		return address
	}
	return net.JoinHostPort(host, port)
}

func (n *Node) assemble() {
	n.peers = newPeers(n.mux)
	n.server = newServer(n)
	n.proposer = newProposer(n.id, n.raft.Load, n.noteTransferRefusal, n.watch.passed, n.m)
	n.proposer.wall = n.opts.WallClock
	n.forwarder = newForwarder(n)
	n.verifier = newCoalescer(n.verify)
	n.reader = newCoalescer(n.readRemote)
	n.observe(n.opts.Metrics)
}

// identity is how this node names itself to peers.
func (n *Node) identity() mux.Identity {
	return mux.Identity{Node: n.id, Incarnation: n.incarnation, Cluster: n.clusterID()}
}

// admits judges an incoming connection of a peer that proved itself. Raft must have
// been meant for this incarnation: what was promised under another is not ours.
func (n *Node) admits(kind mux.Kind, _, target mux.Identity) error {
	if kind == mux.Raft {
		if n.raft.Load() == nil {
			return errors.New("node does not run raft yet")
		}
		if target.Node == "" || target.Incarnation == "" {
			return errors.New("raft connection names no target")
		}
	}
	return mux.Mismatch(target, n.identity())
}

func (n *Node) serverID() raft.ServerID { return serverID(n.id, n.incarnation) }

// ID is the node's id, given or made.
func (n *Node) ID() string { return n.id }

// Address is the advertised peer address.
func (n *Node) Address() string { return n.advertise }

// stopped tells whether Stop was called.
func (n *Node) stopped() bool {
	select {
	case <-n.done:
		return true
	default:
		return false
	}
}

func (n *Node) fatal(code int, err error) {
	n.log.Error("cannot go on", "exit", code, "err", err)
	if n.opts.Fatal != nil {
		n.opts.Fatal(code, err)
		return
	}
	os.Exit(code)
}

// warnOnce logs a line that repeats itself once in ten seconds.
func (n *Node) warnOnce(message string, args ...any) {
	now := time.Now()
	last, known := n.warned.Load(message)
	if known && now.Sub(last.(time.Time)) < 10*time.Second {
		return
	}
	n.warned.Store(message, now)
	n.log.Warn(message, args...)
}
