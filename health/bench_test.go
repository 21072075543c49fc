package health

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/rollcall-io/rollcall/registry"
)

// benchNode is the least that a keeper needs: one service of many instances, read
// without a lock, and a leader reached by a call.
type benchNode struct {
	service *registry.Service
	leases  []registry.Lease
	sw      registry.Switches
	leader  *Keeper // nil: this node leads
}

func newBenchNode(n int) *benchNode {
	d := registry.NewDraft(testService, 0)
	b := &benchNode{sw: registry.DefaultSwitches()}
	for i := range n {
		in := &registry.Instance{
			Spec: specOf(address(i)), Timeouts: registry.DefaultTimeouts(),
			Lease: uint32(i + 1), Grant: registry.Position{Index: uint64(i + 1)},
		}
		d.Put(in)
		b.leases = append(b.leases, registry.Lease{
			LeaseRef: refOf(in), Timeouts: in.Timeouts, Key: in.Address.In(testService), Healthy: true,
		})
	}
	b.service = d.Service()
	return b
}

func (b *benchNode) Instance(k registry.InstanceKey) *registry.Instance {
	return b.service.Instance(k.Address())
}
func (b *benchNode) Service(registry.ServiceKey) *registry.Service { return b.service }
func (b *benchNode) Services(string) []*registry.Service           { return nil }
func (b *benchNode) NamespaceIDs() []string                        { return nil }
func (b *benchNode) Tombstone(registry.InstanceKey) (int64, bool)  { return 0, false }
func (b *benchNode) Switches() registry.Switches                   { return b.sw }
func (b *benchNode) Applied() uint64                               { return 1 }
func (b *benchNode) WaitApplied(context.Context, uint64) error     { return nil }
func (b *benchNode) Lease(uint32) (registry.Lease, bool)           { return registry.Lease{}, false }
func (b *benchNode) VerifyLeader(context.Context) error            { return nil }
func (b *benchNode) Leader() (id string, term uint64, self bool)   { return "n1", 1, b.leader == nil }
func (b *benchNode) ObserveLeases(o registry.LeaseObserver) (s func()) {
	for _, l := range b.leases {
		o.LeaseGranted(l)
	}
	return func() {}
}
func (b *benchNode) Propose(context.Context, registry.Command) (registry.Result, error) {
	return registry.Result{}, nil
}
func (b *benchNode) ProposeAsLeader(context.Context, uint64, registry.Command) (registry.Result, error) {
	return registry.Result{}, nil
}
func (b *benchNode) SendBeats(ctx context.Context, batch registry.BeatBatch) (registry.BeatAnswer, error) {
	return b.leader.HandleBeats(ctx, batch)
}

// benchKeeper starts a keeper; stop ends it and waits.
func benchKeeper(tb testing.TB, n *benchNode) (k *Keeper, stop func()) {
	o := DefaultOptions()
	o.Node, o.State, o.Cluster = "n", n, n
	k, err := New(o)
	if err != nil {
		tb.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var group sync.WaitGroup
	group.Go(func() { _ = k.Run(ctx) })
	if n.leader == nil {
		group.Go(func() { k.Lead(ctx, 1) })
		eventually(tb, func() bool { return k.lead.Load() != nil })
	} else {
		eventually(tb, func() bool { k.collector.mu.Lock(); defer k.collector.mu.Unlock(); return k.collector.everMet })
	}
	return k, func() { cancel(); group.Wait() }
}

// eventually polls until cond holds.
func eventually(tb testing.TB, cond func() bool) {
	tb.Helper()
	ticker := time.NewTicker(time.Millisecond)
	defer ticker.Stop()
	deadline := time.Now().Add(5 * time.Second)
	for !cond() {
		if <-ticker.C; time.Now().After(deadline) {
			tb.Fatal("not within 5 s")
		}
	}
}

const benchInstances = 1000

func benchBeats(b *testing.B, k *Keeper, n *benchNode) {
	ctx := context.Background()
	b.ReportAllocs()
	b.SetParallelism(32) // 64 connections on two cores
	b.RunParallel(func(pb *testing.PB) {
		for i := 0; pb.Next(); i++ {
			key := n.leases[i%benchInstances].Key
			if reply, err := k.Beat(ctx, registry.Beat{Key: key}); err != nil || !reply.Known {
				b.Errorf("beat: %+v, %v", reply, err)
				return
			}
		}
	})
}

func BenchmarkBeatLeader(b *testing.B) {
	n := newBenchNode(benchInstances)
	k, stop := benchKeeper(b, n)
	defer stop()
	benchBeats(b, k, n)
}

func BenchmarkBeatFollower(b *testing.B) {
	n := newBenchNode(benchInstances)
	leader, stopLeader := benchKeeper(b, n)
	defer stopLeader()
	f := *n
	f.leader = leader
	k, stop := benchKeeper(b, &f)
	defer stop()
	benchBeats(b, k, &f)
}
