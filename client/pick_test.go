package client

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
)

// weighted makes a snapshot of healthy instances with these weights.
func weighted(weights ...float64) *Snapshot {
	l := wireList{Name: "g@@s"}
	for n, w := range weights {
		l.Hosts = append(l.Hosts, wireHost{IP: fmt.Sprintf("10.0.%d.%d", n/250, n%250), Port: 80, Weight: w, Healthy: true, Enabled: true})
	}
	name := ServiceName{"g", "s"}
	return newSnapshot(name, l.instances(name), &atomic.Uint64{})
}

func share(t *testing.T, picks int, weights []float64, within float64, pick func(n int) *Instance) {
	t.Helper()
	counts, sum := map[string]int{}, 0.0
	for n := range picks {
		counts[pick(n).IP]++
	}
	for _, w := range weights {
		sum += w
	}
	for n, w := range weights {
		want, got := w/sum, float64(counts[fmt.Sprintf("10.0.0.%d", n)])/float64(picks)
		if math.Abs(got-want) > within {
			t.Errorf("weight %v got %.4f of the picks, want %.4f", w, got, want)
		}
	}
}

func TestPick_SharesFollowWeightsWithinOnePercent(t *testing.T) {
	weights := []float64{0.01, 0.5, 0.5, 1, 2.25, 10, 0}
	s := weighted(weights...)
	share(t, 1_000_000, weights, 0.01, func(int) *Instance { return s.Pick() })
	share(t, 200_000, weights, 0.01, func(n int) *Instance { return s.PickByKey(fmt.Sprint("user-", n)) })
	equal := weighted(1, 3, 1, 1)
	share(t, 100_000, []float64{1, 1, 1, 1}, 1e-6, func(int) *Instance { return equal.Next() })
}

func TestPick_NoneThatMayNotGetTraffic(t *testing.T) {
	l := wireList{Hosts: []wireHost{
		{IP: "a", Weight: 1, Healthy: false, Enabled: true}, {IP: "b", Weight: 1, Healthy: true}, {IP: "c", Healthy: true, Enabled: true},
	}}
	s := newSnapshot(ServiceName{}, l.instances(ServiceName{}), &atomic.Uint64{})
	if len(s.All()) != 3 || len(s.Healthy()) != 0 || s.Pick() != nil || s.Next() != nil || s.PickByKey("x") != nil {
		t.Errorf("%d, %d, %v", len(s.All()), len(s.Healthy()), s.Pick())
	}
	if _, err := found(s.Pick()); !errors.Is(err, ErrNoInstance) {
		t.Error(err)
	}
}

func TestPickByKey_OnlyKeysOfTheLostInstanceMove(t *testing.T) {
	weights := slices.Repeat([]float64{1}, 20)
	before := weighted(weights...)
	weights[7] = 0
	after := weighted(weights...)
	moved := 0
	for n := range 10_000 {
		key := fmt.Sprint(n)
		was, is := before.PickByKey(key), after.PickByKey(key)
		if was.IP == is.IP {
			continue
		}
		if moved++; was.IP != "10.0.0.7" {
			t.Fatalf("%s moved from %s, which is still there", key, was.IP)
		}
	}
	if moved < 300 || moved > 700 {
		t.Errorf("%d of 10,000 keys moved, want about 500", moved)
	}
}

// The law: applying the difference to what was gives what is.
func TestDiff_AppliedToBeforeGivesAfter(t *testing.T) {
	random := func() *Snapshot {
		l := wireList{}
		for range rand.IntN(12) {
			l.Hosts = append(l.Hosts, wireHost{IP: fmt.Sprint("10.0.0.", rand.IntN(8)), Port: 80, Weight: float64(rand.IntN(3)), Healthy: rand.IntN(2) == 0})
		}
		return newSnapshot(ServiceName{}, l.instances(ServiceName{}), &atomic.Uint64{})
	}
	for range 5000 {
		before, after := random(), random()
		e, state := diff(before, after), map[string]*Instance{}
		for _, i := range before.all {
			state[i.addr] = i
		}
		for _, i := range slices.Concat(e.Added, e.Modified) {
			state[i.addr] = i
		}
		for _, i := range e.Removed {
			delete(state, i.addr)
		}
		for _, i := range after.all {
			if got := state[i.addr]; got == nil || !got.equal(i) {
				t.Fatalf("%s: %+v instead of %+v", i.addr, got, i)
			}
		}
		if len(state) != len(after.all) || before.same(after) != e.empty() {
			t.Fatalf("%d instances instead of %d", len(state), len(after.all))
		}
	}
}

var sink *Instance

func BenchmarkLookup(b *testing.B) {
	c := &Client{followers: newFollowers()}
	lookup := map[ServiceName]*follower{}
	for n := range 1000 {
		f := &follower{}
		s := weighted(1, 2, 3, 4, 5, 6, 7, 8, 9, 10)
		s.source = FromServer
		f.current.Store(s)
		lookup[ServiceName{DefaultGroup, fmt.Sprint("service-", n)}] = f
	}
	c.followers.lookup.Store(&lookup)
	name := ServiceName{DefaultGroup, "service-500"}
	s, _ := c.Cached(name)
	for what, f := range map[string]func(){
		"cached":    func() { s, _ = c.Cached(name) },
		"pick":      func() { sink = s.Pick() },
		"next":      func() { sink = s.Next() },
		"near":      func() { sink = s.PickNear(DefaultCluster) },
		"by-key-10": func() { sink = s.PickByKey("user-4711") },
	} {
		b.Run(what, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				f()
			}
		})
	}
}

func TestLookup_AllocatesNothing(t *testing.T) {
	s := weighted(1, 2, 3)
	if n := testing.AllocsPerRun(1000, func() {
		sink = s.Pick()
		sink = s.Next()
		sink = s.PickNear("x")
		sink = s.PickByKey("user")
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
