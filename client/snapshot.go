package client

import (
	"slices"
	"sync/atomic"
	"time"
)

// Snapshot is a service at one moment. It never changes, and its slices are shared: do
// not change them. No method of it blocks, and all are safe for concurrent use. It comes
// from a Service or from Cached; its zero value is not usable.
type Snapshot struct {
	service  ServiceName
	all      []*Instance // by cluster, IP and port
	healthy  pool
	clusters map[string]*pool

	stamp   int64  // lastRefTime
	index   uint64 // 0 where the server is no rollcall
	ordered bool   // stamps come from a replicated log and never go back
	source  Source
	at      time.Time
}

// Source is where a snapshot comes from; the zero value is FromNowhere.
type Source int

// The sources of snapshots.
const (
	FromNowhere  Source = iota // before the first list: empty, which says nothing
	FromServer                 // a list that a server gave, some time ago when none answers now
	FromDisk                   // CacheDir, until a server answers
	FromFailover               // FailoverDir, while its switch is on
)

// String is a word for messages: nowhere, server, disk or failover.
func (s Source) String() string {
	switch s {
	case FromServer:
		return "server"
	case FromDisk:
		return "disk"
	case FromFailover:
		return "failover"
	}
	return "nowhere"
}

// pool are instances to choose from.
type pool struct {
	all  []*Instance
	sums []float64 // of weights up to and with each
	turn *atomic.Uint64
}

func newPool(all []*Instance, turn *atomic.Uint64) pool {
	p := pool{all: all, sums: make([]float64, len(all)), turn: turn}
	sum := 0.0
	for i, in := range all {
		sum += in.Weight
		p.sums[i] = sum
	}
	return p
}

// newSnapshot sorts out who may get traffic. turn is the service's own, so that round
// robin goes on from one snapshot to the next.
func newSnapshot(name ServiceName, all []*Instance, turn *atomic.Uint64) *Snapshot {
	usable := make([]*Instance, 0, len(all))
	for _, i := range all {
		if i.Usable() {
			usable = append(usable, i)
		}
	}
	s := &Snapshot{service: name, all: all, healthy: newPool(usable, turn), clusters: map[string]*pool{}, at: time.Now()}
	for from := 0; from < len(usable); {
		cluster, to := usable[from].Cluster, from+1
		for to < len(usable) && usable[to].Cluster == cluster {
			to++
		}
		p := newPool(usable[from:to:to], turn)
		s.clusters[cluster] = &p
		from = to
	}
	return s
}

// Service is whose snapshot this is, with its group.
func (s *Snapshot) Service() ServiceName { return s.service }

// All are the instances as the registry lists them, by cluster, IP and port, also those
// that may get no traffic. Servers leave disabled ones out, as Nacos does.
func (s *Snapshot) All() []*Instance { return s.all }

// Healthy are those that may get traffic: healthy, enabled, with a weight above 0, in the
// same order. When too few are, by the service's protection threshold, servers list
// all as healthy, as Nacos does.
func (s *Snapshot) Healthy() []*Instance { return s.healthy.all }

// Source is where it comes from.
func (s *Snapshot) Source() Source { return s.source }

// Time is when this host put it in place; a list that is equal renews it. So time.Since is
// how old the knowledge is, up to the poll interval while all is well, and without bound
// while no server answers: the last list is kept however old it is.
func (s *Snapshot) Time() time.Time { return s.at }

// Without is the snapshot as if these instances were not listed: for another choice after
// one that did not answer. It takes time and memory by the number of instances. Instances
// are told apart by their Key.
func (s *Snapshot) Without(lost ...*Instance) *Snapshot {
	left := slices.DeleteFunc(slices.Clone(s.all), func(i *Instance) bool {
		return slices.ContainsFunc(lost, func(l *Instance) bool { return i.compare(l) == 0 })
	})
	next := newSnapshot(s.service, left, s.healthy.turn)
	next.stamp, next.index, next.ordered, next.source, next.at = s.stamp, s.index, s.ordered, s.source, s.at
	return next
}

func (s *Snapshot) same(o *Snapshot) bool {
	return slices.EqualFunc(s.all, o.all, func(a, b *Instance) bool { return a.compare(b) == 0 && a.equal(b) })
}

// Event is what changed of a service between two snapshots, and the newer one. Applying
// it to the older one gives the newer one. It is shared: do not change it.
type Event struct {
	// Added, Removed and Modified are by Key, each sorted; Modified have their new
	// values. All three are empty in the first event of a service without instances.
	Added, Removed, Modified []*Instance
	Snapshot                 *Snapshot // all there is now; never nil
}

func (e Event) empty() bool { return len(e.Added)+len(e.Removed)+len(e.Modified) == 0 }

// diff walks over both lists at once.
func diff(before, after *Snapshot) Event {
	e := Event{Snapshot: after}
	a, b := before.all, after.all
	for len(a) > 0 || len(b) > 0 {
		switch order := headOrder(a, b); {
		case order < 0:
			e.Removed, a = append(e.Removed, a[0]), a[1:]
		case order > 0:
			e.Added, b = append(e.Added, b[0]), b[1:]
		default:
			if !a[0].equal(b[0]) {
				e.Modified = append(e.Modified, b[0])
			}
			a, b = a[1:], b[1:]
		}
	}
	return e
}

// headOrder compares the first of each; an empty list comes after everything.
func headOrder(a, b []*Instance) int {
	switch {
	case len(a) == 0:
		return 1
	case len(b) == 0:
		return -1
	}
	return a[0].compare(b[0])
}
