package probe

import (
	"math/rand/v2"
	"net"
	"strconv"
	"time"

	"github.com/rollcall-io/rollcall/registry"
)

// target is an instance that is probed. The prober's loop alone touches it.
type target struct {
	key        registry.InstanceKey
	generation registry.Position
	address    string
	settings   registry.Checker

	due      time.Time
	interval time.Duration
	// good and bad count equal results in a row.
	good, bad uint32
	// busy while a probe is waiting for room or under way, proposed while its verdict is on the way into the log.
	busy     bool
	proposed bool
}

// newTarget is what to probe of a persistent instance.
func newTarget(service *registry.Service, in *registry.Instance) *target {
	cluster, found := service.Cluster(in.Cluster)
	if !found {
		cluster = registry.NewCluster(in.Cluster)
	}
	port := in.Port
	if !cluster.UseInstancePort {
		port = cluster.CheckPort
	}
	return &target{
		key: in.Address.In(service.Key), generation: in.Generation,
		address:  net.JoinHostPort(in.IP, strconv.Itoa(int(port))),
		settings: cluster.Checker,
	}
}

// same tells whether results for t still hold for o.
func (t *target) same(o *target) bool {
	return t.generation == o.generation && t.address == o.address && t.settings == o.settings
}

// count takes in a result and tells which health it makes certain, if any.
func (t *target) count(o Outcome, times uint32) (healthy, certain bool) {
	switch o {
	case Up:
		t.good, t.bad = t.good+1, 0
	case Refused:
		t.good, t.bad = 0, max(t.bad+1, times)
	default:
		t.good, t.bad = 0, t.bad+1
	}
	return t.good > 0, t.good >= times || t.bad >= times
}

// next sets when the target is probed again. took runs from when the probe was due, so
// it holds the wait for a free place too: probes that fall behind get rarer.
func (t *target) next(now time.Time, took time.Duration, s *Settings) {
	const weight, smooth = 6, 4
	want := min(s.MinInterval+weight*took, s.MaxInterval)
	if t.interval == 0 {
		t.interval = want
	}
	t.interval += (want - t.interval) / smooth
	jitter := time.Duration(rand.Int64N(int64(t.interval)/5+1)) - t.interval/10
	t.due = now.Add(max(t.interval+jitter, s.MinInterval))
}
