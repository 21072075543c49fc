package httpapi

import (
	"context"
	"sync"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/rollcall-io/rollcall/registry"
)

// fake is a one-node registry without a log: it applies commands at once. It stands for
// Reader, Writer, Beater and Cluster.
type fake struct {
	mu       sync.RWMutex
	state    *registry.State
	index    uint64
	switches registry.Switches
	settings fakeSettings

	// The functions replace what the fake does when they are set.
	propose   func(context.Context, registry.Command) (registry.Result, error)
	beat      func(context.Context, registry.Beat) (registry.BeatReply, error)
	readIndex func(context.Context) (uint64, error)
	notReady  error
	leader    string
	proposed  []registry.Command
}

const fakeTime = 1_700_000_000_000

func newFake() *fake {
	return &fake{state: registry.NewState(), index: 7, switches: registry.DefaultSwitches(), leader: "n1",
		settings: fakeSettings{accounts: new(registry.Accounts)}}
}

// newTestServer is a Server over a new fake; change tunes its options.
func newTestServer(t testing.TB, change func(*Options)) (*Server, *fake) {
	t.Helper()
	f := newFake()
	opts := DefaultOptions()
	opts.Reader, opts.Writer, opts.Beater, opts.Cluster = f, f, f, f
	opts.Logger = hclog.NewNullLogger()
	opts.Metrics = prometheus.NewRegistry()
	if change != nil {
		change(&opts)
	}
	s, err := New(opts)
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	return s, f
}

func (f *fake) Service(k registry.ServiceKey) *registry.Service {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.state.Service(k)
}

func (f *fake) Instance(k registry.InstanceKey) *registry.Instance {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.state.Instance(k)
}

func (f *fake) Services(namespace string) []*registry.Service {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.state.Services(namespace)
}

func (f *fake) NamespaceIDs() []string {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.state.Namespaces()
}

func (f *fake) Counts() (services, instances int) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.state.Counts()
}

func (f *fake) Switches() registry.Switches {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.switches
}

func (f *fake) Applied() uint64 {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.index
}

func (f *fake) WaitApplied(ctx context.Context, index uint64) error {
	if f.Applied() >= index {
		return nil
	}
	<-ctx.Done()
	return registry.ErrTimeout
}

func (f *fake) Leader() (id string, term uint64, self bool) { return f.leader, 1, true }
func (f *fake) NodeID() string                              { return "n1" }
func (f *fake) Ready() error                                { return f.notReady }
func (f *fake) LagMs() int64                                { return 0 }

func (f *fake) ReadIndex(ctx context.Context) (uint64, error) {
	if f.readIndex != nil {
		return f.readIndex(ctx)
	}
	return f.Applied(), nil
}

func (f *fake) Members() []registry.Member {
	return []registry.Member{
		{ID: "n1", Address: "10.0.0.1:8848", PeerAddress: "10.0.0.1:7848", State: registry.MemberUp, Leader: true, Voter: true},
		{ID: "n2", PeerAddress: "10.0.0.2:7848", State: registry.MemberDown, Voter: true},
	}
}

func (f *fake) Beat(ctx context.Context, b registry.Beat) (registry.BeatReply, error) {
	if f.beat != nil {
		return f.beat(ctx, b)
	}
	reply := registry.BeatReply{Known: true, Interval: f.Switches().ClientBeatInterval, LightEnabled: f.Switches().LightBeatEnabled}
	in := f.Instance(b.Key)
	switch {
	case in == nil && b.Full == nil:
		return registry.BeatReply{Interval: reply.Interval}, nil
	case in == nil:
		_, err := f.Propose(ctx, registry.Register{Service: b.Key.Service, Spec: *b.Full, FromBeat: true})
		return reply, err
	case !in.Healthy && in.Ephemeral:
		healthy := true
		_, err := f.Propose(ctx, registry.Patch{Key: b.Key, Healthy: &healthy})
		return reply, err
	}
	if v, found := in.Metadata.Get(registry.KeyBeatInterval); found && digits(v, 0) == len(v) {
		reply.Interval = in.Timeouts.Interval
	}
	return reply, nil
}

func (f *fake) Propose(ctx context.Context, c registry.Command) (registry.Result, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.proposed = append(f.proposed, c)
	if f.propose != nil {
		return f.propose(ctx, c)
	}
	f.index++
	r := registry.Result{Index: f.index, Changed: true}
	r.Err = f.apply(c, &r)
	if r.Err != nil {
		return r, r.Err
	}
	return r, nil
}

// edit changes the service of a key, made when it is missing.
func (f *fake) edit(k registry.ServiceKey, change func(*registry.Draft)) {
	var d *registry.Draft
	if s := f.state.Service(k); s != nil {
		d = registry.Edit(s)
	} else {
		d = registry.NewDraft(k, fakeTime)
	}
	change(d)
	d.Touch(f.index, fakeTime+int64(f.index))
	f.state.Publish(d.Service())
}

func (f *fake) apply(c registry.Command, r *registry.Result) *registry.Error {
	switch c := c.(type) {
	case registry.Register:
		return f.put(c.Service, c.Spec)
	case registry.Update:
		return f.update(c)
	case registry.Deregister:
		in := f.state.Instance(c.Key)
		if in != nil && c.Kind != registry.AnyKind && (c.Kind == registry.KindEphemeral) != in.Ephemeral {
			return kindMismatch(in)
		}
		if in != nil {
			f.edit(c.Key.Service, func(d *registry.Draft) { d.Remove(in.Address, fakeTime) })
		}
	case registry.Patch:
		return f.patch(c)
	case registry.MetadataBatch:
		f.merge(c, r)
	case registry.SwitchSet:
		next, err := f.switches.With(c.Entry, c.Value)
		if err != nil {
			return registry.ErrInvalid
		}
		f.switches = next
	default:
		return f.applyService(c)
	}
	return nil
}

func (f *fake) applyService(c registry.Command) *registry.Error {
	switch c := c.(type) {
	case registry.ServiceCreate:
		if f.state.Service(c.Key) != nil {
			return registry.ErrServiceExists
		}
		f.edit(c.Key, func(d *registry.Draft) { d.SetSpec(c.Spec); d.SetManual() })
	case registry.ServiceUpdate:
		if f.state.Service(c.Key) == nil {
			return registry.ErrServiceNotFound
		}
		f.edit(c.Key, func(d *registry.Draft) { d.SetSpec(c.Spec) })
	case registry.ServiceDelete:
		s := f.state.Service(c.Key)
		if s == nil {
			return registry.ErrServiceNotFound
		}
		if s.Len() > 0 {
			return registry.ErrServiceNotEmpty
		}
		f.state.Delete(c.Key)
	case registry.ClusterUpdate:
		if f.state.Service(c.Key) == nil {
			return registry.ErrServiceNotFound
		}
		f.edit(c.Key, func(d *registry.Draft) { d.PutCluster(c.Cluster) })
	default:
		return f.applySettings(c)
	}
	return nil
}

func (f *fake) put(k registry.ServiceKey, spec registry.Spec) *registry.Error {
	spec.Weight = registry.ClampWeight(spec.Weight)
	in := &registry.Instance{Spec: spec, Generation: registry.Position{Index: f.index}}
	in.Timeouts, _, _ = registry.ParseTimeouts(spec.Metadata)
	if old := f.state.Instance(spec.Address.In(k)); old != nil && old.Ephemeral != spec.Ephemeral {
		return kindMismatch(old)
	}
	f.edit(k, func(d *registry.Draft) { d.Put(in) })
	return nil
}

func (f *fake) update(c registry.Update) *registry.Error {
	s := f.state.Service(c.Service)
	if s == nil {
		return registry.ErrServiceNotFound
	}
	for _, in := range s.Instances() {
		if in.IP == c.Spec.IP && in.Port == c.Spec.Port && in.Ephemeral == c.Spec.Ephemeral {
			return f.put(c.Service, c.Spec)
		}
	}
	return registry.ErrInstanceNotFound
}

func (f *fake) patch(c registry.Patch) *registry.Error {
	old := f.state.Instance(c.Key)
	if old == nil {
		return registry.ErrInstanceNotFound
	}
	in := *old
	set(&in.Weight, c.Weight)
	set(&in.Enabled, c.Enabled)
	set(&in.Healthy, c.Healthy)
	set(&in.App, c.App)
	if c.Metadata != nil && c.Merge {
		in.Metadata = in.Metadata.Merge(*c.Metadata)
	} else {
		set(&in.Metadata, c.Metadata)
	}
	f.edit(c.Key.Service, func(d *registry.Draft) { d.Put(&in) })
	return nil
}

func set[T any](into *T, value *T) {
	if value != nil {
		*into = *value
	}
}

func (f *fake) merge(c registry.MetadataBatch, r *registry.Result) {
	s := f.state.Service(c.Service)
	if s == nil {
		return
	}
	wants := func(in *registry.Instance) bool {
		for _, t := range c.Targets {
			if t.Address == in.Address && t.Ephemeral == in.Ephemeral {
				return true
			}
		}
		return len(c.Targets) == 0 && (c.Kind == registry.KindEphemeral) == in.Ephemeral
	}
	for _, old := range s.Instances() {
		if !wants(old) {
			continue
		}
		in := *old
		if c.Delete {
			in.Metadata = in.Metadata.Without(c.Metadata)
		} else {
			in.Metadata = in.Metadata.Merge(c.Metadata)
		}
		f.edit(c.Service, func(d *registry.Draft) { d.Put(&in) })
		r.Touched = append(r.Touched, registry.Target{Address: in.Address, Ephemeral: in.Ephemeral})
	}
}
