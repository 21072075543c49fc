package probe

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/rollcall-io/rollcall/registry"
)

// stage holds services, answers probes and applies what is proposed.
type stage struct {
	mu       sync.Mutex
	state    *registry.State
	switches registry.Switches
	index    uint64
	answers  map[string]Outcome
	latency  time.Duration
	probes   map[string][]time.Time
	running  int
	most     int
	batches  [][]registry.ProbeItem
	refuse   error
	log      bytes.Buffer
	prober   *Prober
}

func newBench() *stage {
	return &stage{
		state: registry.NewState(), switches: registry.DefaultSwitches(),
		answers: make(map[string]Outcome), probes: make(map[string][]time.Time),
	}
}

func (b *stage) Service(k registry.ServiceKey) *registry.Service {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.state.Service(k)
}

func (b *stage) Services(ns string) []*registry.Service {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.state.Services(ns)
}

func (b *stage) NamespaceIDs() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.state.Namespaces()
}

func (b *stage) Switches() registry.Switches {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.switches
}

func (b *stage) Check(ctx context.Context, address string, _ registry.Checker) Outcome {
	b.mu.Lock()
	b.probes[address] = append(b.probes[address], time.Now())
	b.running++
	b.most = max(b.most, b.running)
	outcome, found := b.answers[address]
	latency := b.latency
	b.mu.Unlock()
	if !found {
		outcome = Up
	}
	if latency > 0 {
		select {
		case <-time.After(latency):
		case <-ctx.Done():
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.running--
	return outcome
}

func (b *stage) propose(_ context.Context, items []registry.ProbeItem) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.refuse != nil {
		return b.refuse
	}
	b.batches = append(b.batches, items)
	for _, item := range items {
		if in := b.state.Instance(item.Key); in != nil && in.Generation == item.Generation {
			next := *in
			next.Healthy = item.Healthy
			b.publish(item.Key.Service, func(d *registry.Draft) { d.Put(&next) })
		}
	}
	return nil
}

func (b *stage) publish(key registry.ServiceKey, change func(*registry.Draft)) {
	d := registry.NewDraft(key, 0)
	if s := b.state.Service(key); s != nil {
		d = registry.Edit(s)
	}
	change(d)
	b.state.Publish(d.Service())
}

// change edits a service and tells the prober when it runs.
func (b *stage) change(key registry.ServiceKey, edit func(*registry.Draft)) {
	b.mu.Lock()
	b.publish(key, edit)
	b.mu.Unlock()
	if b.prober != nil {
		b.prober.Changed(key)
	}
}

func (b *stage) add(key registry.ServiceKey, ephemeral bool, addresses ...registry.Address) {
	b.change(key, func(d *registry.Draft) {
		for _, a := range addresses {
			b.index++
			d.Put(&registry.Instance{
				Spec:       registry.Spec{Address: a, Ephemeral: ephemeral, Enabled: true, Healthy: true, Weight: 1},
				Generation: registry.Position{Index: b.index},
			})
		}
	})
}

func (b *stage) healthy(key registry.ServiceKey, a registry.Address) bool {
	return b.Service(key).Instance(a).Healthy
}

func (b *stage) probed(address string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.probes[address])
}

func (b *stage) answer(address string, o Outcome) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.answers[address] = o
}

func (b *stage) proposals() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.batches)
}

// run is a test in virtual time with a prober at work.
func run(t *testing.T, test func(t *testing.T, b *stage), prepare func(*stage), change ...func(*Settings)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := newBench()
		prepare(b)
		s := DefaultSettings()
		s.Checkers = map[string]Checker{registry.CheckTCP: b}
		for _, c := range change {
			c(&s)
		}
		log := hclog.New(&hclog.LoggerOptions{Output: &b.log})
		b.prober = New(s, b, b.propose, log, NewMetrics(nil))
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan struct{})
		go func() { defer close(done); b.prober.Run(ctx) }()
		test(t, b)
		cancel()
		<-done
	})
}

var service = registry.NewServiceKey("", "", "perm")

func at(i int) registry.Address {
	return registry.Address{Cluster: "DEFAULT", IP: fmt.Sprintf("10.0.%d.%d", i/250, i%250), Port: 80}
}

func host(i int) string { return at(i).IP + ":80" }

func one(b *stage) { b.add(service, false, at(1)) }
