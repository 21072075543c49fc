package raftnode

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/rollcall-io/rollcall/internal/wire"
	"github.com/rollcall-io/rollcall/registry"
)

// Exit codes that Options.Fatal is given.
const (
	ExitStore = 70 // term or vote could not be written
	ExitStuck = 71 // leader work or a leadership transfer did not end
	ExitState = 72 // the data belongs to another cluster
	// ExitDamage is also the code of a start that was refused: errors of Open and Start
	// that are about damage have a method ExitCode that returns it.
	ExitDamage = 73 // what is on disk is not what was written
)

// FSM is what entries are applied to.
type FSM interface {
	raft.BatchingFSM
	// Applied is the index of the last entry applied; WaitApplied waits until it has
	// reached an index, at most as long as ctx.
	Applied() uint64
	WaitApplied(ctx context.Context, index uint64) error
	// ClusterID is empty until the command that sets it is applied.
	ClusterID() string
	// Digest is the digest of the state and the index at which it was taken.
	Digest() (index uint64, digest registry.Digest)
}

// LeaderJob is work of a leader. It ends when ctx does; the term's own first command
// is applied before it starts.
type LeaderJob func(ctx context.Context, term uint64)

// Options make a Node. Start from DefaultOptions.
type Options struct {
	// NodeID is made up and kept when empty; 1 to 64 of letters, digits and . _ -
	NodeID  string
	DataDir string
	// PeerAddr is where the peer port listens, Advertise the host:port under which
	// others reach it; empty means PeerAddr. HTTPAddr is told to the other nodes.
	PeerAddr  string
	Advertise string
	HTTPAddr  string
	// BootstrapExpect is the number of nodes that form a new cluster, Join where they
	// are; the own address may be among them.
	BootstrapExpect int
	Join            []string
	// Secret is the cluster secret, TLS the certificates. With neither the peer port
	// stays closed and the node is alone.
	Secret []byte
	TLS    *tls.Config

	// ElectionTimeout is Raft's heartbeat, election and lease timeout in one.
	ElectionTimeout time.Duration
	// CommitTimeout is how soon followers learn of a commit when nothing else flows.
	CommitTimeout    time.Duration
	MaxAppendEntries int // 1 to 1024
	// A snapshot is made when, looked at every SnapshotInterval, the log has grown by
	// SnapshotEntries or SnapshotBytes; TrailingLogs entries, or TrailingBytes if that
	// is less, stay behind it for slow followers.
	SnapshotInterval time.Duration
	SnapshotEntries  uint64
	SnapshotBytes    uint64
	TrailingLogs     uint64
	TrailingBytes    uint64

	// DigestInterval is how often replicas are compared at most.
	DigestInterval time.Duration

	// WriteTimeout bounds a write whose context has no earlier deadline.
	WriteTimeout time.Duration
	// MaxHolders bounds the writes that wait for a leader.
	MaxHolders int
	// Under MinFreeWrites bytes of free disk client writes are refused, under
	// MinFreeLead a leader hands over. 0 switches each off.
	MinFreeWrites, MinFreeLead uint64

	// OnBeats handles a batch of beats on the leader.
	OnBeats func(context.Context, registry.BeatBatch) (registry.BeatAnswer, error)
	// OnAsk answers questions of other nodes, by topic; see Node.AskOthers. It bounds its
	// own time. A topic that is not there is refused.
	OnAsk map[string]func(ctx context.Context, question []byte) ([]byte, error)
	// LeaderJobs run during each term of this node.
	LeaderJobs []LeaderJob
	// Unchanged answers a registration that would change nothing, refreshing its lease.
	// It is asked on a leader whose leadership was checked. Nil: all go through the log.
	Unchanged func(registry.Register) (registry.Result, bool)

	// Fatal ends the process with a code; it is called when going on would do harm.
	Fatal   func(code int, err error)
	Log     hclog.Logger
	Metrics prometheus.Registerer

	// Listen, Dial and FreeSpace replace the operating system's in tests, Disk wraps the
	// log store under its clock; nil means the real ones.
	Listen    func(address string) (net.Listener, error)
	Dial      func(ctx context.Context, address string) (net.Conn, error)
	FreeSpace func(dir string) (uint64, error)
	// WallClock stamps log entries in place of time.Now. Nodes' clocks may differ: nothing
	// that lives or dies by time goes by these stamps.
	WallClock func() time.Time
	Disk      func(raft.LogStore) raft.LogStore
}

// DefaultOptions are the defaults of everything that has one.
func DefaultOptions() Options {
	return Options{
		DataDir: "rollcall-data", PeerAddr: "127.0.0.1:7848", BootstrapExpect: 1,
		ElectionTimeout: 700 * time.Millisecond, CommitTimeout: 2 * time.Millisecond, MaxAppendEntries: 256,
		SnapshotInterval: 30 * time.Second, SnapshotEntries: 30_000, SnapshotBytes: 64 << 20,
		TrailingLogs: 60_000, TrailingBytes: 256 << 20,
		DigestInterval: time.Minute, WriteTimeout: 3 * time.Second, MaxHolders: 1000,
		MinFreeWrites: 512 << 20, MinFreeLead: 128 << 20,
	}
}

// Bounds of the way into the log.
const (
	queueCommands = 4096
	queueBytes    = 8 << 20
	entryCommands = 256
	entryBytes    = 256 << 10
	// inFlight is the number of entries on their way.
	inFlight = 4
	// forwardCalls is the number of calls to the leader on their way.
	forwardCalls = 4
	// deepenAt is how many commands must wait, at the least, for an entry to go out beside
	// others. The first goes at once, so a quiet cluster waits for nothing; but four small
	// entries cost four times the work of one that carries their commands, on every node,
	// and bring each command home no sooner. A call to the leader costs two nodes a little,
	// and what it brings meanwhile makes the next entry fuller: callAt is less.
	deepenAt = 32
	callAt   = 12

	featureLevel = wire.Level
)

// Validate returns all problems of the options, joined.
func (o *Options) Validate() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if o.NodeID != "" && !validNodeID(o.NodeID) {
		bad("node id %q: must be 1 to 64 letters, digits and . _ -", o.NodeID)
	}
	if o.DataDir == "" {
		bad("data directory must be given")
	}
	if o.BootstrapExpect < 0 {
		bad("bootstrap expect %d: must not be negative", o.BootstrapExpect)
	}
	o.validateAddresses(bad)
	o.validateRaft(bad)
	if o.WriteTimeout <= 0 || o.DigestInterval <= 0 {
		bad("write timeout %v and digest interval %v: must be positive", o.WriteTimeout, o.DigestInterval)
	}
	return errors.Join(errs...)
}

func (o *Options) validateAddresses(bad func(string, ...any)) {
	for _, a := range append([]string{o.PeerAddr, o.Advertise}, o.Join...) {
		if a == "" {
			continue
		}
		if _, _, err := net.SplitHostPort(a); err != nil {
			bad("peer address %q: must be host:port", a)
		}
	}
	if !o.clustered() {
		return
	}
	if len(o.Secret) == 0 && o.TLS == nil {
		bad("a cluster of %d nodes with %d to join needs a cluster secret or TLS", o.BootstrapExpect, len(o.Join))
	}
	host, _, err := net.SplitHostPort(o.advertised())
	if ip := net.ParseIP(host); err == nil && (host == "" || ip != nil && ip.IsUnspecified()) {
		bad("advertised address %q: must name a host that other nodes reach", o.advertised())
	}
}

func (o *Options) validateRaft(bad func(string, ...any)) {
	if o.ElectionTimeout < 20*time.Millisecond {
		bad("election timeout %v: must be at least %v", o.ElectionTimeout, 20*time.Millisecond)
	}
	if o.CommitTimeout < time.Millisecond || o.CommitTimeout > o.ElectionTimeout/2 {
		bad("commit timeout %v: must be from 1ms to half the election timeout, %v", o.CommitTimeout, o.ElectionTimeout/2)
	}
	if o.MaxAppendEntries < 1 || o.MaxAppendEntries > 1024 {
		bad("append entries %d: must be from 1 to 1024", o.MaxAppendEntries)
	}
	if o.SnapshotInterval < 5*time.Millisecond {
		bad("snapshot interval %v: must be at least 5ms", o.SnapshotInterval)
	}
	if o.SnapshotEntries == 0 || o.SnapshotBytes == 0 {
		bad("snapshot entries %d and bytes %d: must be positive", o.SnapshotEntries, o.SnapshotBytes)
	}
}

// clustered tells whether other nodes are meant to be there.
func (o *Options) clustered() bool { return o.BootstrapExpect > 1 || len(o.Join) > 0 }

// open tells whether the peer port may be opened.
func (o *Options) open() bool { return len(o.Secret) > 0 || o.TLS != nil }

func (o *Options) advertised() string {
	if o.Advertise != "" {
		return o.Advertise
	}
	return o.PeerAddr
}

func validNodeID(id string) bool {
	if id == "" || len(id) > 64 {
		return false
	}
	for _, c := range []byte(id) {
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '.' || c == '_' || c == '-') {
			return false
		}
	}
	return true
}
