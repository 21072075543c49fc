package probe

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"go.uber.org/goleak"

	"github.com/rollcall-io/rollcall/registry"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestProber_ThreeInARowChangeHealth(t *testing.T) {
	run(t, func(t *testing.T, b *stage) {
		b.answer(host(1), Down)
		for b.probed(host(1)) < 3 {
			if !b.healthy(service, at(1)) {
				t.Fatalf("unhealthy after %d probes", b.probed(host(1)))
			}
			time.Sleep(50 * time.Millisecond)
		}
		time.Sleep(time.Second)
		if b.healthy(service, at(1)) {
			t.Fatal("still healthy after three failures")
		}
		b.answer(host(1), Up)
		before := b.probed(host(1))
		for b.probed(host(1)) < before+3 {
			if b.healthy(service, at(1)) {
				t.Fatalf("healthy after %d probes", b.probed(host(1))-before)
			}
			time.Sleep(50 * time.Millisecond)
		}
		time.Sleep(time.Second)
		if !b.healthy(service, at(1)) {
			t.Error("still unhealthy after three successes")
		}
		if n := b.proposals(); n != 2 {
			t.Errorf("%d proposals, want 2", n)
		}
	}, one)
}

func TestProber_RefusedCountsAtOnce(t *testing.T) {
	run(t, func(t *testing.T, b *stage) {
		for b.probed(host(1)) == 0 { // the first comes at random
			time.Sleep(50 * time.Millisecond)
		}
		time.Sleep(time.Second) // well before the second
		if b.healthy(service, at(1)) || b.probed(host(1)) > 1 {
			t.Errorf("healthy %v after %d refused probes", b.healthy(service, at(1)), b.probed(host(1)))
		}
	}, func(b *stage) { one(b); b.answers[host(1)] = Refused })
}

func TestProber_MixedResultsChangeNothing(t *testing.T) {
	run(t, func(t *testing.T, b *stage) {
		for i := range 600 {
			b.answer(host(1), []Outcome{Up, Down}[b.probed(host(1))/2%2])
			time.Sleep(100 * time.Millisecond)
			if !b.healthy(service, at(1)) {
				t.Fatalf("unhealthy after %d ms", i*100)
			}
		}
	}, one)
}

func TestProber_Schedule(t *testing.T) {
	run(t, func(t *testing.T, b *stage) {
		time.Sleep(2200 * time.Millisecond)
		if b.probed(host(1)) == 0 {
			t.Error("no first probe within two seconds")
		}
		time.Sleep(time.Minute)
		if n := b.probed(host(1)); n < 20 || n > 32 {
			t.Errorf("%d quick probes in a minute, want one in 2 to 2.3 s", n)
		}
		b.mu.Lock()
		b.latency = time.Minute // every probe runs into the timeout
		b.mu.Unlock()
		time.Sleep(30 * time.Second)
		before := b.probed(host(1))
		time.Sleep(time.Minute)
		if n := b.probed(host(1)) - before; n < 9 || n > 13 {
			t.Errorf("%d slow probes in a minute, want one in about 5 s", n)
		}
	}, one)
}

func TestProber_FollowsTheServices(t *testing.T) {
	run(t, func(t *testing.T, b *stage) {
		time.Sleep(3 * time.Second)
		b.add(service, false, at(2))
		b.change(service, func(d *registry.Draft) { d.Remove(at(1), 0) })
		time.Sleep(3 * time.Second)
		if b.probed(host(2)) == 0 {
			t.Error("a new instance is not probed")
		}
		before := b.probed(host(1))
		cluster := registry.NewCluster("DEFAULT")
		cluster.UseInstancePort, cluster.CheckPort = false, 8080
		b.change(service, func(d *registry.Draft) { d.PutCluster(cluster) })
		time.Sleep(10 * time.Second)
		if b.probed(host(1)) != before {
			t.Error("a removed instance is probed")
		}
		if b.probed(at(2).IP+":8080") == 0 {
			t.Error("the check port is not probed")
		}
		b.mu.Lock()
		b.state.Delete(service)
		b.mu.Unlock()
		b.prober.Resync()
		time.Sleep(time.Second)
		before = b.probed(at(2).IP + ":8080")
		time.Sleep(10 * time.Second)
		if b.probed(at(2).IP+":8080") != before {
			t.Error("an instance of a deleted service is probed")
		}
	}, one)
}

func TestProber_LeavesOthersAlone(t *testing.T) {
	run(t, func(t *testing.T, b *stage) {
		time.Sleep(10 * time.Second)
		for i := 1; i <= 4; i++ {
			if n := b.probed(host(i)); n != 0 {
				t.Errorf("%s was probed %d times", host(i), n)
			}
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		if n := strings.Count(b.log.String(), "no probe of this type"); n != 1 {
			t.Errorf("unknown type logged %d times, want once: %s", n, b.log.String())
		}
	}, func(b *stage) {
		b.add(service, true, at(1))
		for i, kind := range map[int]string{2: registry.CheckNone, 3: "GOPHER", 4: "gopher"} {
			key := registry.NewServiceKey("", "", kind+fmt.Sprint(i))
			b.add(key, false, at(i))
			cluster := registry.NewCluster("DEFAULT")
			cluster.Checker.Type = kind
			b.change(key, func(d *registry.Draft) { d.PutCluster(cluster) })
		}
	})
}

func TestProber_SwitchedOff(t *testing.T) {
	run(t, func(t *testing.T, b *stage) {
		time.Sleep(10 * time.Second)
		if n := b.probed(host(1)); n != 0 {
			t.Errorf("%d probes with health checks off", n)
		}
		b.mu.Lock()
		b.switches.HealthCheckEnabled = true
		b.mu.Unlock()
		time.Sleep(time.Second)
		if b.probed(host(1)) == 0 {
			t.Error("no probe with health checks on")
		}
	}, func(b *stage) { one(b); b.switches.HealthCheckEnabled = false })
}

func TestProber_FailedProposalIsMadeAgain(t *testing.T) {
	run(t, func(t *testing.T, b *stage) {
		time.Sleep(4 * time.Second)
		b.mu.Lock()
		b.refuse = nil
		b.mu.Unlock()
		time.Sleep(6 * time.Second)
		if b.healthy(service, at(1)) {
			t.Error("the verdict was lost")
		}
	}, func(b *stage) { one(b); b.answers[host(1)] = Refused; b.refuse = errors.New("no") })
}

func TestProber_ReregistrationStartsAnew(t *testing.T) {
	run(t, func(t *testing.T, b *stage) {
		b.answer(host(1), Down)
		for range 20 { // registered again before the third failure, again and again
			n := b.probed(host(1))
			b.add(service, false, at(1))
			for b.probed(host(1)) < n+2 {
				time.Sleep(20 * time.Millisecond)
			}
		}
		if n := b.proposals(); n != 0 {
			t.Errorf("%d proposals from results of other registrations", n)
		}
	}, one)
}

func TestProber_FiveThousandWithinTheBound(t *testing.T) {
	const n = 5000
	run(t, func(t *testing.T, b *stage) {
		time.Sleep(20 * time.Second)
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.most > 64 {
			t.Errorf("%d probes at once, want at most 64", b.most)
		}
		down := 0
		for _, batch := range b.batches {
			if len(batch) > batchItems {
				t.Errorf("batch of %d", len(batch))
			}
			down += len(batch)
		}
		if len(b.probes) != n || down != n/10 {
			t.Errorf("%d instances probed, %d found down, want %d and %d", len(b.probes), down, n, n/10)
		}
	}, func(b *stage) {
		b.latency = 10 * time.Millisecond
		for i := range n {
			b.add(registry.NewServiceKey("", "", fmt.Sprint(i/100)), false, at(i))
			if i%10 == 0 {
				b.answers[host(i)] = Refused
			}
		}
	}, func(s *Settings) { s.Concurrency = 64 })
}

func TestSettings_Validate(t *testing.T) {
	if err := DefaultSettings().Validate(); err != nil {
		t.Errorf("defaults: %v", err)
	}
	err := Settings{MinInterval: 2, MaxInterval: 1}.Validate()
	for _, part := range []string{"concurrency 0", "timeout", "from 2ns to 1ns"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("error does not tell of %s: %v", part, err)
		}
	}
}

// TestProber_ChangesReportedDuringAnIdleLook: a look that finds nothing to do must leave
// the set of changes alone, which the change feed may be writing at that moment.
func TestProber_ChangesReportedDuringAnIdleLook(t *testing.T) {
	b := newBench()
	p := New(DefaultSettings(), b, b.propose, hclog.NewNullLogger(), NewMetrics(nil))
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range 5000 {
			p.Changed(registry.NewServiceKey("public", "", fmt.Sprintf("s%d", i)))
		}
	}()
	for reported := false; !reported; {
		p.reload()
		select {
		case <-done:
			reported = true
		default:
		}
	}
}
