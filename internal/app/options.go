package app

import (
	"context"
	"io"
	"net"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/rollcall-io/rollcall/auth"
)

// Options are the settings of one node. DefaultOptions holds the defaults of the
// command line; cmd maps flags, environment and file onto it.
type Options struct {
	// NodeID names the node in the cluster; empty means the one kept in DataDir, or a
	// new random one.
	NodeID  string
	DataDir string
	// HTTPAddr and PeerAddr are what the node listens on, host:port.
	HTTPAddr string
	PeerAddr string
	// PushAddr is the UDP address that pushes leave from and their acknowledgements come
	// to; an empty host is all addresses, port 0 any port. Empty means ":0".
	PushAddr string
	// MaxConnections bounds the clients' connections; one more is answered 503.
	MaxConnections int
	// Advertise is the host:port under which other nodes reach PeerAddr. A name is looked
	// up at each dial. Empty means PeerAddr, which then needs a host.
	Advertise string

	// BootstrapExpect is the number of nodes that make a new cluster together; Join lists
	// their peer addresses.
	BootstrapExpect int
	Join            []string
	// ClusterSecretFile holds the secret that every node of a cluster must know. The TLS
	// files, all or none, replace it by certificates.
	ClusterSecretFile string
	TLSCertFile       string
	TLSKeyFile        string
	TLSCAFile         string

	ElectionTimeout    time.Duration
	SnapshotInterval   time.Duration
	SnapshotEntries    uint64
	TrailingLogs       uint64
	HealthScanInterval time.Duration
	// EmptyServiceTTL is how long a service made by a registration stays without
	// instances; 0 keeps it for good.
	EmptyServiceTTL time.Duration

	// Auth asks every caller for an account; AuthTokenTTL is how long a login is good.
	Auth         bool
	AuthTokenTTL time.Duration

	// DebugAddr, if set, serves the Go profiler.
	DebugAddr string

	LogLevel  string
	LogFormat string

	// The rest is for embedding and tests. Logger replaces the one made of LogLevel and
	// LogFormat; Stdout replaces the standard output; Fatal ends the process with a code, nil means os.Exit. ListenPeer and
	// DialPeer replace the operating system's network on the peer port. CommitTimeout
	// other than 0 replaces Raft's. WallClock replaces time.Now where wall time matters, in
	// the stamps of log entries and what is compared with them; leases never go by it.
	Logger        hclog.Logger
	Stdout        io.Writer
	Fatal         func(code int)
	ListenPeer    func(address string) (net.Listener, error)
	DialPeer      func(ctx context.Context, address string) (net.Conn, error)
	CommitTimeout time.Duration
	WallClock     func() time.Time

	// Version is shown in the log line at start and in the metrics.
	Version string
}

// DefaultOptions is one node, alone, with its data in ./rollcall-data.
func DefaultOptions() Options {
	return Options{
		DataDir: "./rollcall-data", HTTPAddr: ":8848", PeerAddr: ":7848", MaxConnections: 20_000, BootstrapExpect: 1,
		ElectionTimeout: 700 * time.Millisecond, SnapshotInterval: 30 * time.Second,
		SnapshotEntries: 30_000, TrailingLogs: 60_000,
		HealthScanInterval: 500 * time.Millisecond, EmptyServiceTTL: time.Minute,
		AuthTokenTTL: auth.DefaultTokenTTL,
		LogLevel:     "info", LogFormat: "text",
	}
}

// clustered tells whether the node is meant to have peers.
func (o Options) clustered() bool { return o.BootstrapExpect > 1 || len(o.Join) > 0 }

// secured tells whether peers can prove that they belong together.
func (o Options) secured() bool { return o.ClusterSecretFile != "" || o.TLSCertFile != "" }

// clientAddress is the host:port under which clients reach the node, as the other nodes
// tell them: HTTPAddr, with the host of Advertise where it names none.
func (o Options) clientAddress() string {
	host, port, err := net.SplitHostPort(o.HTTPAddr)
	if ip := net.ParseIP(host); err == nil && (host == "" || ip != nil && ip.IsUnspecified()) {
		peer := o.Advertise
		if peer == "" {
			peer = o.PeerAddr
		}
		if peerHost, _, err := net.SplitHostPort(peer); err == nil && peerHost != "" {
			return net.JoinHostPort(peerHost, port)
		}
	}
	return o.HTTPAddr
}

func (o Options) wallClock() time.Time {
	if o.WallClock != nil {
		return o.WallClock()
	}
	return time.Now()
}

func (o Options) commitTimeout(otherwise time.Duration) time.Duration {
	if o.CommitTimeout > 0 {
		return o.CommitTimeout
	}
	return otherwise
}

func (o Options) pushAddr() string {
	if o.PushAddr == "" {
		return ":0"
	}
	return o.PushAddr
}
