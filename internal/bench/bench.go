// Package bench puts load on a running cluster over HTTP and reports what it saw. It is
// behind `rollcall bench`. It talks to the nodes as any client does and imports nothing
// of ours. A run is bounded in time and in the number of instances, and removes what it
// registered.
package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"
)

// Ops are the kinds of load, in the order in which help lists them.
var Ops = []string{"register", "reregister", "beat", "list", "live"}

// Options say what load to make.
type Options struct {
	// Addrs are the nodes, host:port; connections are spread over them.
	Addrs []string
	// Op is one of Ops: register new instances, register the same again, beat or list them
	// as fast as Conns connections allow; or live: Instances beat every Interval, which is
	// what a fleet at rest does.
	Op        string
	Conns     int
	Duration  time.Duration
	Instances int
	Interval  time.Duration
	// User and Password log in at nodes that ask for accounts; no User, no login.
	User, Password string
	// Prefix of the services' names, which the run must have for itself.
	Prefix string
}

// instancesPerService is the size of the services that a run makes.
const instancesPerService = 10

// Report is what a run saw.
type Report struct {
	Op        string  `json:"op"`
	Nodes     int     `json:"nodes"`
	Conns     int     `json:"conns"`
	Instances int     `json:"instances"`
	Seconds   float64 `json:"seconds"`
	Done      int     `json:"done"`
	Failed    int     `json:"failed"`
	// FirstFailure is the first answer that was not as wanted.
	FirstFailure string  `json:"firstFailure,omitempty"`
	PerSecond    float64 `json:"perSecond"`
	P50Ms        float64 `json:"p50Ms"`
	P99Ms        float64 `json:"p99Ms"`
	MaxMs        float64 `json:"maxMs"`
	// IndexGrowth is by how much the Raft index moved during the measurement.
	IndexGrowth uint64 `json:"indexGrowth"`
	// Unhealthy is how many instances a node showed unhealthy or not at all at the end of a
	// live run, on the worst node.
	Unhealthy int `json:"unhealthy"`
}

// Validate reports every option that cannot work, joined.
func (o Options) Validate() error {
	var bad []error
	add := func(format string, args ...any) { bad = append(bad, fmt.Errorf(format, args...)) }
	if len(o.Addrs) == 0 {
		add("--addr: name at least one node")
	}
	if !slices.Contains(Ops, o.Op) {
		add("load %q: must be one of %v", o.Op, Ops)
	}
	if o.Conns < 1 || o.Conns > 4096 {
		add("--conns %d: must be from 1 to 4096", o.Conns)
	}
	if o.Duration < time.Second || o.Duration > time.Hour {
		add("--duration %s: must be from 1s to 1h", o.Duration)
	}
	if o.Instances < 1 || o.Instances > 1_000_000 {
		add("--instances %d: must be from 1 to 1000000", o.Instances)
	}
	if o.Interval < 100*time.Millisecond {
		add("--interval %s: must be at least 100ms", o.Interval)
	}
	return errors.Join(bad...)
}

// Run makes the load and blocks until it is over. progress gets a line every few seconds.
// What was registered is removed, also when ctx ends before; that takes two minutes at
// most.
func Run(ctx context.Context, o Options, progress io.Writer) (Report, error) {
	if err := o.Validate(); err != nil {
		return Report{}, err
	}
	r := &run{opts: o, fleet: newFleet(o), progress: progress}
	defer r.fleet.close()
	if err := r.fleet.login(ctx); err != nil {
		return Report{}, err
	}
	if _, err := r.fleet.index(ctx); err != nil {
		return Report{}, err // before thousands of requests fail in the same way
	}
	report, err := r.load(ctx)
	if ctx.Err() != nil {
		err = fmt.Errorf("the run was cut off: %w", context.Cause(ctx))
	}
	if err = errors.Join(err, r.cleanUp()); err != nil {
		return Report{}, err
	}
	return report, nil
}

func (r *run) load(ctx context.Context) (Report, error) {
	if r.opts.Op != "register" {
		if err := r.prepare(ctx); err != nil {
			return Report{}, err
		}
	}
	return r.measure(ctx)
}
