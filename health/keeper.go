package health

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/rollcall-io/rollcall/registry"
)

// Keeper takes beats on every node and keeps the leases on the leader. All methods are
// safe for concurrent use.
type Keeper struct {
	opts    Options
	state   State
	cluster Cluster
	log     hclog.Logger
	metrics *metrics

	// lead is the present term's work while this node leads and its table is complete.
	lead      atomic.Pointer[lead]
	scanned   atomic.Pointer[scanned]
	notes     silentNotes
	collector *collector
}

// New makes a Keeper. Options that cannot work are returned as one joined error.
func New(o Options) (*Keeper, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	k := &Keeper{
		opts: o, state: o.State, cluster: o.Cluster, log: o.Logger.Named("health"),
	}
	k.metrics = newMetrics(o.Registerer, k)
	k.collector = newCollector(k)
	return k, nil
}

// Run collects this node's beats for the leader, on every node, until ctx ends; then
// beats that wait, and later ones, are refused with ErrShuttingDown unless this node
// leads. It blocks and is called once.
func (k *Keeper) Run(ctx context.Context) error { return k.collector.run(ctx) }

// Renew refreshes the lease of an identical re-registration, which then needs no log
// entry. It is false, and the registration has to go through the log, when this node
// does not lead, the lease was granted anew, its instance is unhealthy, a flip or
// eviction of it is in flight, or other nodes may note it as silent.
func (k *Keeper) Renew(ref registry.LeaseRef) bool {
	l := k.lead.Load()
	return l != nil && l.table.renew(ref, l.table.leaseTime())
}

// Status is what an operator wants to know of the leases. On a node that does not lead
// all but Leading and KeptBeats is zero.
type Status struct {
	Leading bool
	Term    uint64
	// Leases are those in force, Unhealthy those whose instance is unhealthy, Silent those
	// whose beat is late by half an interval or half a second, at the last scan.
	Leases    int
	Unhealthy int
	Silent    int
	// Storm tells whether evictions are held back; StormHeld is how many are.
	Storm     bool
	StormHeld int
	// LastScan is how long the last scan took.
	LastScan time.Duration
	// Compensated is the time that pauses took out of this term's lease time.
	Compensated time.Duration
	// KeptBeats are beats that wait for a leader.
	KeptBeats int
}

// scanned is what the last scan saw.
type scanned struct {
	silent, held int
	storm        bool
	took         time.Duration
}

// Status is the present state of the leases on this node. It does not block.
func (k *Keeper) Status() Status {
	s := Status{KeptBeats: k.collector.keptCount()}
	l := k.lead.Load()
	if l == nil {
		return s
	}
	s.Leading, s.Term = true, l.term
	s.Leases, s.Unhealthy = int(l.table.leases.Load()), int(l.table.unhealthy.Load())
	s.Compensated = time.Duration(l.table.shift.Load())
	if f := k.scanned.Load(); f != nil {
		s.Silent, s.Storm, s.StormHeld, s.LastScan = f.silent, f.storm, f.held, f.took
	}
	return s
}

func refOf(in *registry.Instance) registry.LeaseRef {
	return registry.LeaseRef{Number: in.Lease, Grant: in.Grant}
}
