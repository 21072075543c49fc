package health

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/rollcall-io/rollcall/registry"
)

// world stands for the cluster beside the package: one replicated state that all nodes
// see at once, a log of what was proposed, and links that can be cut.
type world struct {
	t *testing.T

	mu        sync.Mutex
	state     *registry.State
	leases    map[uint32]registry.Lease
	lowest    uint32 // no number below is free
	tombs     map[registry.InstanceKey]int64
	switches  registry.Switches
	index     uint64
	term      uint64
	leader    string
	nodes     map[string]*node
	observers map[int]registry.LeaseObserver
	observed  int
	log       []logged

	// verifyErr, proposeErr and before change what proposals meet. before runs without the
	// lock, ahead of the append; proposeErr's error is returned in place of the result,
	// after the command was applied if applied is set.
	verifyErr  error
	verifying  func() // runs without the lock
	proposeErr func(registry.Command) (err error, applied bool)
	before     func(registry.Command)
	sendErr    func(from string) error
	unfit      bool          // answers to batches are cut short
	apart      bool          // nodes cannot ask each other
	tellTime   time.Duration // how long it takes to tell others of renewed leases
}

// logged is an applied command with the time of its application.
type logged struct {
	at      time.Time
	node    string
	command registry.Command
	skipped int
}

// node is one node's view: State and Cluster of its Keeper.
type node struct {
	*world
	id     string
	keeper *Keeper
	reg    *prometheus.Registry
	sees   func(*registry.Instance) *registry.Instance // how the node lags
	now    atomic.Int64                                // added to the clock: a pause
	wall   atomic.Int64

	endRun, endLead context.CancelFunc
	ran, led        chan struct{}
	down            bool
}

func newWorld(t *testing.T) *world {
	return &world{
		t: t, state: registry.NewState(), leases: make(map[uint32]registry.Lease),
		tombs: make(map[registry.InstanceKey]int64), switches: registry.DefaultSwitches(),
		nodes: make(map[string]*node), observers: make(map[int]registry.LeaseObserver),
		tellTime: time.Millisecond,
	}
}

// start runs a node until the test ends.
func (w *world) start(id string, change ...func(*Options)) *node {
	w.t.Helper()
	n := &node{world: w, id: id, ran: make(chan struct{})}
	o := DefaultOptions()
	o.Node, o.State, o.Cluster, o.Peers = id, n, n, n
	o.Logger = hclog.NewNullLogger()
	n.reg = prometheus.NewRegistry()
	o.Registerer = n.reg
	began := time.Now()
	o.Now = func() time.Duration { return time.Since(began) + time.Duration(n.now.Load()) }
	o.WallMs = func() int64 { return time.Now().Add(time.Duration(n.wall.Load())).UnixMilli() }
	for _, c := range change {
		c(&o)
	}
	k, err := New(o)
	if err != nil {
		w.t.Fatal(err)
	}
	n.keeper = k
	ctx, cancel := context.WithCancel(context.Background())
	n.endRun = cancel
	go func() { defer close(n.ran); _ = k.Run(ctx) }()
	w.mu.Lock()
	w.nodes[id] = n
	w.mu.Unlock()
	return n
}

// elect makes a node the leader of the next term; whoever led is deposed before.
func (w *world) elect(id string) *node {
	w.depose()
	w.mu.Lock()
	w.term++
	w.leader = id
	term, n := w.term, w.nodes[id]
	w.mu.Unlock()
	ctx, cancel := context.WithCancel(context.Background())
	n.endLead, n.led = cancel, make(chan struct{})
	go func() { defer close(n.led); n.keeper.Lead(ctx, term) }()
	return n
}

// depose ends the present term, leaving no leader.
func (w *world) depose() {
	w.mu.Lock()
	n := w.nodes[w.leader]
	w.leader = ""
	w.mu.Unlock()
	if n != nil && n.endLead != nil {
		n.endLead()
		<-n.led
	}
}

// stop ends everything and waits.
func (w *world) stop() {
	w.depose()
	for _, n := range w.nodes {
		n.endRun()
		<-n.ran
	}
}

// crash ends the leader's process: it takes no beats and answers nothing until it is
// started anew, and then knows nothing.
func (w *world) crash() (id string) {
	w.mu.Lock()
	n := w.nodes[w.leader]
	w.leader, n.down = "", true
	w.mu.Unlock()
	n.endLead()
	<-n.led
	n.endRun()
	<-n.ran
	return n.id
}

func (n *node) crashed() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.down
}

// node is a node as it is at present.
func (w *world) node(id string) *node {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.nodes[id]
}

// with changes what the hooks above do.
func (w *world) with(change func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change()
}

// pause makes a node's clock jump, as if the process had stood still.
func (n *node) pause(d time.Duration) { n.now.Add(int64(d)) }

var testService = registry.NewServiceKey("", "", "svc")

func address(i int) registry.Address {
	return registry.Address{Cluster: registry.DefaultCluster, IP: fmt.Sprintf("10.0.%d.%d", i/250, i%250), Port: 80}
}

func specOf(a registry.Address, pairs ...registry.Pair) registry.Spec {
	return registry.Spec{
		Address: a, Ephemeral: true, Enabled: true, Healthy: true, Weight: 1, Metadata: registry.NewMetadata(pairs),
	}
}

// timeouts is metadata that sets an instance's interval and timeouts in milliseconds.
func timeouts(interval, beat, expire int) []registry.Pair {
	return []registry.Pair{
		{Key: registry.KeyBeatInterval, Value: fmt.Sprint(interval)},
		{Key: registry.KeyBeatTimeout, Value: fmt.Sprint(beat)},
		{Key: registry.KeyDeleteTimeout, Value: fmt.Sprint(expire)},
	}
}

// register puts an instance and returns its key.
func (w *world) register(s registry.Spec) registry.InstanceKey {
	w.t.Helper()
	if res := w.apply("client", 0, registry.Register{Service: testService, Spec: s}); res.Err != nil {
		w.t.Fatal(res.Err)
	}
	return s.Address.In(testService)
}

// beat sends a light beat and wants it known.
func (n *node) beat(key registry.InstanceKey) {
	n.t.Helper()
	reply, err := n.keeper.Beat(context.Background(), registry.Beat{Key: key})
	if err != nil || !reply.Known {
		n.t.Fatalf("beat of %s on %s at %s: %+v, %v", key, n.id, time.Now().Format("05.000"), reply, err)
	}
}

// metric is the value of a counter or gauge, with the value of its label if it has one.
func (n *node) metric(name, label string) float64 {
	n.t.Helper()
	families, err := n.reg.Gather()
	if err != nil {
		n.t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == name && (label == "" || m.GetLabel()[0].GetValue() == label) {
				return m.GetCounter().GetValue() + m.GetGauge().GetValue()
			}
		}
	}
	n.t.Fatalf("no metric %s %s", name, label)
	return 0
}

// health is "up", "down" or "gone".
func (w *world) health(key registry.InstanceKey) string {
	switch in := w.Instance(key); {
	case in == nil:
		return "gone"
	case in.Healthy:
		return "up"
	}
	return "down"
}

// commands are what was applied, less registrations by clients.
func (w *world) commands() []logged {
	w.mu.Lock()
	defer w.mu.Unlock()
	var own []logged
	for _, l := range w.log {
		if l.node != "client" {
			own = append(own, l)
		}
	}
	return own
}
