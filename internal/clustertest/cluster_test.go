package clustertest

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/rollcall-io/rollcall/test/faults/figures"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// long are timeouts of an instance that a test does not beat.
const long = "metadata=%7B%22preserved.heart.beat.timeout%22%3A%22600000%22%2C%22preserved.ip.delete.timeout%22%3A%22900000%22%7D"

// patient are timeouts of 4 s to unhealthy and 6 s to gone: a node that is cut off answers
// beats for three seconds, which an instance must be able to lose, and a busy machine may
// stand still for one.
const patient = "metadata=%7B%22preserved.heart.beat.interval%22%3A%22500%22%2C%22preserved.heart.beat.timeout%22%3A%224000%22%2C%22preserved.ip.delete.timeout%22%3A%226000%22%7D"

func TestCluster_RegistrationThroughAFollowerIsListedThereAtOnce(t *testing.T) {
	c := Start(t, 3, nil)
	f := c.Followers()[0]
	for i := range 50 {
		f.MustRegister("svc", "10.0.0.1", 1000+i, long)
		if hosts, err := f.List("svc"); err != nil || len(hosts) != i+1 {
			t.Fatalf("after %d registrations the node that said ok lists %d: %v", i+1, len(hosts), err)
		}
	}
	for _, m := range c.Members() {
		c.Until("50 instances on "+m.ID, func() bool { hosts, _ := m.List("svc"); return len(hosts) == 50 })
	}
}

func TestCluster_SilentInstanceLeavesAndBeatingOneStays(t *testing.T) {
	c := Start(t, 3, nil)
	f := c.Followers()[0]
	f.MustRegister("svc", "10.0.0.1", 1, patient)
	f.MustRegister("svc", "10.0.0.2", 2, patient)
	stop := beatAll(c, "svc", "10.0.0.1", 1)
	defer stop()
	for _, m := range c.Members() {
		c.Until("only the beating instance on "+m.ID, func() bool {
			hosts, err := m.List("svc")
			if err == nil && len(hosts) > 0 && (hosts[0].IP == "10.0.0.1" && !hosts[0].Healthy) {
				t.Fatalf("%s shows the beating instance unhealthy", m.ID)
			}
			return len(hosts) == 1 && hosts[0].IP == "10.0.0.1"
		})
	}
}

// beatAll beats an instance through all running nodes in turn until stop is called.
func beatAll(c *Cluster, service, ip string, port int) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	nodes := c.Running()
	wg.Go(func() {
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for i := 0; ; i++ {
			for k := range nodes { // as clients do: the next node when one does not answer 200
				if a, err := nodes[(i+k)%len(nodes)].Beat(service, ip, port); err == nil && a.Status == http.StatusOK {
					break
				}
			}
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
		}
	})
	return func() { cancel(); wg.Wait() }
}

func TestCluster_LeaderCutOffRefusesWritesAndEvictsNobody(t *testing.T) {
	for name, fault := range map[string]Fault{"mute": {Drop: true}, "cut": {Reset: true}} {
		t.Run(name, func(t *testing.T) {
			c := Start(t, 3, nil)
			old := c.Leader()
			for i := range 20 {
				old.MustRegister("svc", "10.0.0.1", 1000+i, patient)
			}
			var stops []func()
			for i := range 20 {
				stops = append(stops, beatAll(c, "svc", "10.0.0.1", 1000+i))
			}
			c.Isolate(old, fault)
			c.Until("another leader", func() bool {
				for _, m := range c.Running() {
					if _, _, self := m.Node.Raft().Leader(); self && m != old {
						return true
					}
				}
				return false
			})
			if a, err := old.Register("lost", "10.0.0.9", 9); err != nil || a.Status != http.StatusServiceUnavailable {
				t.Errorf("the leader that was cut off answered %d %q %v", a.Status, a.Body, err)
			}
			c.Heal()
			c.WaitReady()
			deadline := time.Now().Add(5 * time.Second) // past the timeouts
			for time.Now().Before(deadline) {
				for _, m := range c.Running() {
					if n := m.Healthy("svc"); n != 20 {
						t.Fatalf("%s shows %d healthy of 20 that beat", m.ID, n)
					}
				}
			}
			for _, stop := range stops {
				stop()
			}
			for _, m := range c.Running() {
				if hosts, _ := m.List("lost"); len(hosts) != 0 {
					t.Errorf("%s lists a registration that was refused", m.ID)
				}
			}
		})
	}
}

func TestCluster_OneWayLossOfAnyLinkKeepsAcknowledgedWrites(t *testing.T) {
	row := figures.Track(t, "one-way loss of each link")
	c := Start(t, 3, nil)
	var acked atomic.Int64
	for _, from := range c.Members() {
		for _, to := range c.Members() {
			if from == to {
				continue
			}
			c.Link(from, to, Fault{Drop: true})
			var writers sync.WaitGroup
			for _, m := range c.Members() {
				writers.Go(func() {
					a, err := m.Register("svc", fmt.Sprintf("10.%d.%d.1", from.index, to.index), 1000+m.index, long)
					if err == nil && a.Status == http.StatusOK {
						acked.Add(1)
					}
				})
			}
			writers.Wait()
			c.Heal()
			row.Rounds++
		}
	}
	want := int(acked.Load())
	if want == 0 {
		t.Fatal("not one write was acknowledged")
	}
	row.Wrote(len(c.Members())*row.Rounds, want, 0)
	c.WaitReady()
	for _, m := range c.Members() {
		c.Until(fmt.Sprintf("%d acknowledged writes on %s", want, m.ID), func() bool { hosts, _ := m.List("svc"); return len(hosts) >= want })
	}
}

func TestCluster_SlowAndChoppedLinksOnlyCostTime(t *testing.T) {
	c := Start(t, 3, nil)
	f := c.Followers()
	c.Isolate(f[0], Fault{Delay: 5 * time.Millisecond, Jitter: 5 * time.Millisecond})
	c.Isolate(f[1], Fault{OneByOne: true})
	for i := range 20 {
		f[i%2].MustRegister("svc", "10.0.0.1", 1000+i, long)
	}
	for _, m := range c.Members() {
		c.Until("20 instances on "+m.ID, func() bool { hosts, _ := m.List("svc"); return len(hosts) == 20 })
	}
}

func TestCluster_AllStoppedAndStartedKeepsEverything(t *testing.T) {
	c := Start(t, 3, nil)
	for i := range 30 {
		c.Members()[i%3].MustRegister("svc", "10.0.0.1", 1000+i, long)
	}
	for _, m := range c.Members() {
		m.Stop()
	}
	for _, m := range c.Members() {
		m.Start()
	}
	c.WaitReady()
	for _, m := range c.Members() {
		if n := m.Healthy("svc"); n != 30 {
			t.Errorf("%s lists %d healthy of 30 as soon as it is ready", m.ID, n)
		}
	}
}

func TestCluster_WipedNodeCatchesUpAndCountsAgain(t *testing.T) {
	c := Start(t, 3, nil)
	victim := c.Followers()[0]
	for i := range 30 {
		c.Leader().MustRegister("svc", "10.0.0.1", 1000+i, long)
	}
	victim.Stop()
	victim.Wipe()
	victim.Start()
	c.WaitReady()
	if n := victim.Healthy("svc"); n != 30 {
		t.Fatalf("the wiped node lists %d of 30 when ready", n)
	}
	var other *Member
	for _, m := range c.Followers() {
		if m != victim {
			other = m
		}
	}
	if other == nil { // the wiped node's return may have moved the lead
		other = c.Leader()
	}
	c.Until("the wiped node a voter again", func() bool {
		voters := 0
		for _, member := range c.Leader().Node.Raft().Members() {
			if member.Voter {
				voters++
			}
		}
		return voters == 3
	})
	other.Stop()
	c.Until("a write without the other node", func() bool {
		a, err := victim.Register("svc", "10.0.0.2", 1, long)
		return err == nil && a.Status == http.StatusOK
	})
}
