package probe

import (
	"context"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/rollcall-io/rollcall/registry"
)

const (
	// tick is the grain of the schedule.
	tick = 100 * time.Millisecond
	// maxChanged bounds the services noted as changed; beyond, all are looked through.
	maxChanged = 65536
	// batchItems is how many verdicts go into one command.
	batchItems = 512
)

// Services is what the prober reads of the state.
type Services interface {
	Service(registry.ServiceKey) *registry.Service
	Services(namespace string) []*registry.Service
	NamespaceIDs() []string
	Switches() registry.Switches
}

// Propose brings verdicts into the log and returns once they are applied or failed.
type Propose func(ctx context.Context, items []registry.ProbeItem) error

// Prober probes the persistent instances for one term. Changed and Resync may be called
// from anywhere.
type Prober struct {
	settings Settings
	services Services
	propose  Propose
	log      hclog.Logger
	metrics  *Metrics

	// The loop's own.
	targets map[registry.ServiceKey]map[registry.Address]*target
	total   int
	ready   []*target // due, waiting for room
	running int
	results chan result
	done    chan []*target
	pending []verdict
	sending bool
	unknown map[string]bool // checker types that were logged

	mu      sync.Mutex
	changed map[registry.ServiceKey]struct{}
	all     bool
}

type result struct {
	target  *target
	outcome Outcome
}

type verdict struct {
	target  *target
	healthy bool
}

// New makes a prober that looks at all services when it starts, and then at those that
// Changed names.
func New(s Settings, services Services, propose Propose, log hclog.Logger, m *Metrics) *Prober {
	return &Prober{
		settings: s, services: services, propose: propose, log: log, metrics: m,
		targets: make(map[registry.ServiceKey]map[registry.Address]*target),
		results: make(chan result, s.Concurrency),
		done:    make(chan []*target, 1),
		unknown: make(map[string]bool),
		changed: make(map[registry.ServiceKey]struct{}),
		all:     true,
	}
}

// Changed tells that a service changed. It does not block.
func (p *Prober) Changed(key registry.ServiceKey) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.changed) >= maxChanged {
		p.all = true
	}
	if !p.all {
		p.changed[key] = struct{}{}
	}
}

// Resync tells that changes were missed. It does not block.
func (p *Prober) Resync() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.all = true
}

// Run probes until ctx ends, and has then waited for all probes under way.
func (p *Prober) Run(ctx context.Context) {
	var group sync.WaitGroup
	defer p.metrics.targets.Set(0)
	defer group.Wait()
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case r := <-p.results:
			p.take(r)
			p.start(ctx, &group)
		case sent := <-p.done:
			p.sent(sent)
		case <-ticker.C:
			p.reload()
			p.send(ctx, &group)
			p.ripen()
			p.start(ctx, &group)
		}
	}
}

// reload brings the targets in line with the services that changed.
func (p *Prober) reload() {
	p.mu.Lock()
	changed, all := p.changed, p.all
	if all || len(changed) > 0 {
		p.changed, p.all = make(map[registry.ServiceKey]struct{}), false
	} else {
		changed = nil // it stays with those who report changes
	}
	p.mu.Unlock()
	if all {
		p.reloadAll()
	}
	for key := range changed {
		p.load(key, p.services.Service(key))
	}
	p.metrics.targets.Set(float64(p.total))
}

func (p *Prober) reloadAll() {
	gone := make(map[registry.ServiceKey]struct{}, len(p.targets))
	for key := range p.targets {
		gone[key] = struct{}{}
	}
	for _, ns := range p.services.NamespaceIDs() {
		for _, s := range p.services.Services(ns) {
			delete(gone, s.Key)
			p.load(s.Key, s)
		}
	}
	for key := range gone {
		p.load(key, nil)
	}
}

// load replaces the targets of one service, keeping those that are still the same.
func (p *Prober) load(key registry.ServiceKey, s *registry.Service) {
	before := p.targets[key]
	var after map[registry.Address]*target
	if s != nil {
		for _, in := range s.Instances() {
			if in.Ephemeral || !p.probed(s, in) {
				continue
			}
			if after == nil {
				after = make(map[registry.Address]*target)
			}
			after[in.Address] = p.keepOrMake(before[in.Address], newTarget(s, in))
		}
	}
	p.total += len(after) - len(before)
	if after == nil {
		delete(p.targets, key)
		return
	}
	p.targets[key] = after
}

func (p *Prober) keepOrMake(old, made *target) *target {
	if old != nil && old.same(made) {
		return old
	}
	made.due = time.Now().Add(rand.N(p.settings.FirstWithin))
	return made
}

// probed tells whether there is a checker for an instance. A type without one is logged
// once in a term.
func (p *Prober) probed(s *registry.Service, in *registry.Instance) bool {
	kind := registry.CheckTCP
	if cluster, found := s.Cluster(in.Cluster); found {
		kind = strings.ToUpper(cluster.Checker.Type)
	}
	if p.settings.Checkers[kind] != nil {
		return true
	}
	if kind != registry.CheckNone && !p.unknown[kind] {
		p.unknown[kind] = true
		p.log.Warn("no probe of this type: instances are not probed", "type", kind, "service", s.Key)
	}
	return false
}
