package e2e

import (
	"fmt"
	"net"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/rollcall-io/rollcall/test/e2e/nodes"
)

// target listens where persistent instances are, and counts who knocks.
type target struct {
	listener net.Listener
	wg       sync.WaitGroup
	mu       sync.Mutex
	knocks   []time.Time
}

func listen(t *testing.T, address string) *target {
	t.Helper()
	listener, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	g := &target{listener: listener}
	g.wg.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			conn.Close()
			g.mu.Lock()
			g.knocks = append(g.knocks, time.Now())
			g.mu.Unlock()
		}
	})
	return g
}

func (g *target) address() string { return g.listener.Addr().String() }
func (g *target) port() int       { return g.listener.Addr().(*net.TCPAddr).Port }
func (g *target) close()          { g.listener.Close(); g.wg.Wait() }

// rates are the mean number of knocks in half a second since a time, and the highest.
func (g *target) rates(since time.Time) (mean, most float64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	buckets := map[int]int{}
	last := 0
	for _, at := range g.knocks {
		if at.After(since) {
			last = int(at.Sub(since) / (500 * time.Millisecond))
			buckets[last]++
		}
	}
	total := 0
	for _, n := range buckets {
		total += n
		most = max(most, float64(n))
	}
	return float64(total) / float64(last+1), most
}

// registerPersistent registers one instance that is probed. Safe for concurrent use.
func registerPersistent(c *nodes.Cluster, via *nodes.Node, service, cluster string, port int) {
	form := nodes.Instance{Service: service, IP: "127.0.0.1", Port: port}.Form()
	form.Set("ephemeral", "false")
	form.Set("clusterName", cluster)
	c.Until("registration of "+service+"/"+cluster, func() bool {
		a, err := via.Do(http.MethodPost, "/instance", form)
		return err == nil && a.OK()
	})
}

// registerMany registers n instances of one address, in clusters of 20 to a service.
func registerMany(t *testing.T, c *nodes.Cluster, n, port int) {
	t.Helper()
	var wg sync.WaitGroup
	for k := range 20 {
		wg.Go(func() {
			for i := range n / 20 {
				registerPersistent(c, c.Nodes()[i%3], "fleet-"+strconv.Itoa(i), fmt.Sprintf("c%d", k), port)
			}
		})
	}
	wg.Wait()
}

// cpu is the CPU time of all running nodes so far, in seconds.
func cpu(t *testing.T, c *nodes.Cluster) (total float64) {
	t.Helper()
	for _, n := range c.Nodes() {
		if n.Running() {
			seconds, err := n.Metric("process_cpu_seconds_total")
			if err != nil {
				t.Fatal(err)
			}
			total += seconds
		}
	}
	return total
}

// steadyCost is the mean rate of probes, in half a second, once all instances are probed.
// They must not come in bursts.
func steadyCost(t *testing.T, c *nodes.Cluster, fleet *target, many int) float64 {
	t.Helper()
	start, before := time.Now(), cpu(t, c)
	pass(either(6*time.Second, 30*time.Second))
	used := (cpu(t, c) - before) / time.Since(start).Seconds()
	mean, most := fleet.rates(start.Add(3 * time.Second))
	t.Logf("%d instances: %.0f probes a second, %.0f at most, %.2f cores for three nodes", many, 2*mean, 2*most, used)
	if most > 2.5*mean+50 {
		t.Errorf("probes come in bursts: %.0f in half a second, %.0f on average", most, mean)
	}
	return mean
}

// shows tells whether all running nodes show the health of a key.
func shows(c *nodes.Cluster, service, key string, want bool) func() bool {
	return func() bool {
		for _, n := range c.Nodes() {
			if keys := n.Keys(service); n.Running() && (keys == nil || keys[key] != want) {
				return false
			}
		}
		return true
	}
}

// TestProbes_OfManyPersistentInstances: their cost is steady, a new leader begins without a
// storm, a closed port is seen within 10 s, and an open one within 25 s although the
// leader changed in between.
func TestProbes_OfManyPersistentInstances(t *testing.T) {
	many := either(1000, 5000)
	c := nodes.Start(t, binary, 3)
	fleet, one := listen(t, "127.0.0.1:0"), listen(t, "127.0.0.1:0")
	defer fleet.close()
	registerMany(t, c, many, fleet.port())
	registerPersistent(c, c.Nodes()[0], "one", "DEFAULT", one.port())
	registerPersistent(c, c.Nodes()[0], "one", "other", fleet.port()) // healthy, or the protect threshold hides the rest
	mean := steadyCost(t, c, fleet, many)

	address, key := one.address(), "127.0.0.1:"+strconv.Itoa(one.port())
	one.close()
	t.Logf("closed port seen after %s", c.Within(10*time.Second, "unhealthy instance on all nodes", shows(c, "one", key, false)))

	killed := time.Now()
	leader := c.Leader()
	leader.Kill()
	again := listen(t, address)
	defer again.close()
	t.Logf("open port seen after %s, the leader killed meanwhile", c.Within(25*time.Second, "healthy instance on all nodes", shows(c, "one", key, true)))
	pass(3 * time.Second)
	_, afterwards := fleet.rates(killed)
	t.Logf("%.0f probes a second at most after the take-over", 2*afterwards)
	if afterwards > 2.5*mean+50 {
		t.Errorf("a storm at the take-over: %.0f in half a second, %.0f on average before", afterwards, mean)
	}
	for i := 0; i < many/20; i += 10 {
		c.Until("healthy fleet", shows(c, "fleet-"+strconv.Itoa(i), fleet.address(), true))
	}
}
