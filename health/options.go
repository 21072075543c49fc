package health

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/rollcall-io/rollcall/health/probe"
	"github.com/rollcall-io/rollcall/registry"
)

// Reader is what the keeper reads of this node's applied state.
type Reader interface {
	// Instance is a registered instance, or nil. It is called for every beat.
	Instance(registry.InstanceKey) *registry.Instance
	// Tombstone tells until when, in wall milliseconds, a key counts as just deregistered.
	Tombstone(registry.InstanceKey) (untilMs int64, found bool)
	Switches() registry.Switches
	// Applied is the index that the state stands at; WaitApplied blocks until it is
	// reached or ctx ends.
	Applied() uint64
	WaitApplied(ctx context.Context, index uint64) error
}

// LeaseSource tells of the replicated leases.
type LeaseSource interface {
	// Lease is a lease in force.
	Lease(number uint32) (registry.Lease, bool)
	// ObserveLeases calls obs.LeaseGranted for each lease in force before it returns, and
	// then obs for each change until stop is called; after stop it calls no more.
	ObserveLeases(obs registry.LeaseObserver) (stop func())
}

// State is this node's applied state.
type State interface {
	Reader
	LeaseSource
	probe.Services
}

// Cluster is the way to the log and to the leader.
type Cluster interface {
	// Leader is the present leader as this node knows it, "" when it knows none. It is
	// called for every batch of beats.
	Leader() (id string, term uint64, self bool)
	// VerifyLeader proves by a majority that this node leads.
	VerifyLeader(ctx context.Context) error
	// Propose takes a command from any node and returns once it is applied here.
	Propose(ctx context.Context, c registry.Command) (registry.Result, error)
	// ProposeAsLeader takes a command only if this node leads in that term; it returns
	// once the command is applied here. Commands are appended in the order of the calls.
	ProposeAsLeader(ctx context.Context, term uint64, c registry.Command) (registry.Result, error)
	// SendBeats passes a batch to the present leader.
	SendBeats(ctx context.Context, b registry.BeatBatch) (registry.BeatAnswer, error)
}

// Peers are the other nodes.
type Peers interface {
	// AskSilent returns what each of them answers to Keeper.Silent, as far as it comes
	// before ctx ends.
	AskSilent(ctx context.Context) []registry.SilentNotes
	// TellRenewed calls Keeper.Renewed on each, with at most registry.MaxSilentLeases, and
	// returns when all have heard it or ctx ends.
	TellRenewed(ctx context.Context, refs []registry.LeaseRef)
}

// Options make a Keeper.
type Options struct {
	// Node is this node's id.
	Node    string
	State   State
	Cluster Cluster
	// Peers is nil where there are no other nodes.
	Peers  Peers
	Logger hclog.Logger
	// Registerer takes the metrics; nil keeps them unregistered.
	Registerer prometheus.Registerer

	// ScanInterval is the time between two scans for expired leases.
	ScanInterval time.Duration
	// Now is a monotonic clock. WallMs is the wall clock in milliseconds since 1970, used
	// for tombstones alone.
	Now    func() time.Duration
	WallMs func() int64
	// Probe tunes the active probes.
	Probe probe.Settings
}

// DefaultScanInterval is a tenth of what Nacos uses, so that an expired lease is
// noticed within half a second.
const DefaultScanInterval = 500 * time.Millisecond

// DefaultOptions holds the defaults of everything but Node, State and Cluster.
func DefaultOptions() Options {
	start := time.Now()
	return Options{
		Logger:       hclog.NewNullLogger(),
		ScanInterval: DefaultScanInterval,
		Now:          func() time.Duration { return time.Since(start) },
		WallMs:       func() int64 { return time.Now().UnixMilli() },
		Probe:        probe.DefaultSettings(),
	}
}

// validate reports every option that cannot work, joined.
func (o Options) validate() error {
	var bad []error
	if o.Node == "" {
		bad = append(bad, errors.New("health: Node must not be empty"))
	}
	if o.State == nil || o.Cluster == nil {
		bad = append(bad, errors.New("health: State and Cluster must be given"))
	}
	if o.Logger == nil || o.Now == nil || o.WallMs == nil {
		bad = append(bad, errors.New("health: Logger, Now and WallMs must be given: start from DefaultOptions"))
	}
	if o.ScanInterval < minScanInterval || o.ScanInterval > maxScanInterval {
		bad = append(bad, fmt.Errorf("health: scan interval %s: must be from %s to %s",
			o.ScanInterval, minScanInterval, maxScanInterval))
	}
	if err := o.Probe.Validate(); err != nil {
		bad = append(bad, err)
	}
	return errors.Join(bad...)
}

// Bounds of the scan interval: below, a scan of a million leases would eat a core;
// above, promises about expiry mean nothing.
const (
	minScanInterval = 10 * time.Millisecond
	maxScanInterval = time.Minute
)
