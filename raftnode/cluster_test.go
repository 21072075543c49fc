package raftnode

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime/pprof"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	"go.uber.org/goleak"

	"github.com/rollcall-io/rollcall/internal/loopback"
	"github.com/rollcall-io/rollcall/registry"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// testNode is one member of a test cluster: a node that can be stopped and started.
type testNode struct {
	*Node
	fsm  *testFSM
	opts Options
	up   bool
}

// testCluster is a cluster over loopback TCP with stores on disk.
type testCluster struct {
	t     testing.TB
	nodes []*testNode
	mu    sync.Mutex
	fatal []string
	links *links
}

// newTestCluster makes the options of n nodes and starts none.
func newTestCluster(t testing.TB, n int, change func(i int, o *Options)) *testCluster {
	t.Helper()
	c := &testCluster{t: t, links: newLinks()}
	dir := t.TempDir()
	var join []string
	for range n {
		join = append(join, loopback.FreeAddress(t))
	}
	for i := range n {
		o := DefaultOptions()
		o.NodeID, o.DataDir = fmt.Sprintf("n%d", i+1), filepath.Join(dir, fmt.Sprintf("n%d", i+1))
		o.PeerAddr, o.BootstrapExpect = join[i], n
		if o.ElectionTimeout = calmElection; n == 1 {
			brisk(i, &o)
		}
		o.MinFreeWrites, o.MinFreeLead = 0, 0
		o.Log = hclog.NewNullLogger()
		if testing.Verbose() {
			o.Log = hclog.New(&hclog.LoggerOptions{Name: o.NodeID, Level: hclog.Info})
		}
		o.Fatal = func(code int, err error) {
			c.mu.Lock()
			c.fatal = append(c.fatal, fmt.Sprintf("%s: exit %d: %v", o.NodeID, code, err))
			c.mu.Unlock()
		}
		if n > 1 {
			o.Join, o.Secret = join, []byte("a-secret-of-the-test")
			o.Dial = c.links.dialer(o.PeerAddr)
		}
		if change != nil {
			change(i, &o)
		}
		c.nodes = append(c.nodes, &testNode{opts: o})
	}
	t.Cleanup(c.close)
	return c
}

// calmElection is the election timeout unless a test says otherwise: no busy machine
// stands still for so long, so no election comes that the test did not ask for.
const calmElection = 1500 * time.Millisecond

// brisk is for nodes alone, and for tests that wait for elections and bear any number of
// them at any time: an ordinary pause of a busy machine causes one.
func brisk(_ int, o *Options) { o.ElectionTimeout = 200 * time.Millisecond }

// startCluster starts n nodes and waits until all are ready.
func startCluster(t testing.TB, n int, change func(i int, o *Options)) *testCluster {
	t.Helper()
	c := newTestCluster(t, n, change)
	c.form()
	return c
}

// form starts all nodes of a new cluster and waits until they are ready, and until the
// leader has written what it writes by itself: no log grows then without the test.
func (c *testCluster) form() {
	c.t.Helper()
	for i := range c.nodes {
		c.start(i)
	}
	c.elect()
	c.waitReady()
	eventually(c.t, 15*time.Second, "the cluster's id is known to all", func() error {
		for _, n := range c.nodes {
			if n.clusterID() == "" {
				return fmt.Errorf("not to %s", n.opts.NodeID)
			}
		}
		return nil
	})
}

// elect lets the first election of a new cluster begin at once. Left to themselves nodes
// wait for it up to twice the election timeout.
func (c *testCluster) elect() {
	c.t.Helper()
	var first *testNode
	eventually(c.t, 15*time.Second, "a cluster that can elect", func() error {
		for _, n := range c.up() {
			if n.raft.Load() == nil {
				return fmt.Errorf("%s does not run Raft", n.opts.NodeID)
			}
			if len(n.servers()) == len(c.nodes) {
				first = n
			}
		}
		if first == nil {
			return fmt.Errorf("no node has the configuration")
		}
		return nil
	})
	if leader, _ := first.raft.Load().LeaderWithID(); leader != "" {
		return
	}
	first.transport.news.hand(raft.RPC{
		Command:  &raft.TimeoutNowRequest{RPCHeader: raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax}},
		RespChan: make(chan raft.RPCResponse, 1),
	})
}

func (c *testCluster) start(i int) *testNode {
	c.t.Helper()
	n := c.nodes[i]
	n.fsm = newTestFSM()
	var err error
	if n.Node, err = Open(n.opts, n.fsm); err != nil {
		c.t.Fatalf("open %s: %v", n.opts.NodeID, err)
	}
	n.up = true
	if err := n.Start(context.Background()); err != nil {
		c.t.Fatalf("start %s: %v", n.opts.NodeID, err)
	}
	return n
}

func (c *testCluster) stop(i int) {
	c.t.Helper()
	n := c.nodes[i]
	if !n.up {
		return
	}
	n.up = false
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := n.Stop(ctx); err != nil {
		c.t.Errorf("stop %s: %v", n.opts.NodeID, err)
		pprof.Lookup("goroutine").WriteTo(os.Stderr, 2)
	}
}

func (c *testCluster) close() {
	var group sync.WaitGroup
	for i := range c.nodes {
		group.Go(func() { c.stop(i) })
	}
	group.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, f := range c.fatal {
		c.t.Errorf("fatal: %s", f)
	}
}

// up are the nodes that run.
func (c *testCluster) up() []*testNode {
	var nodes []*testNode
	for _, n := range c.nodes {
		if n.up {
			nodes = append(nodes, n)
		}
	}
	return nodes
}

func (c *testCluster) waitReady() {
	c.t.Helper()
	eventually(c.t, 30*time.Second, "all nodes ready", func() error {
		for _, n := range c.up() {
			if err := n.Ready(); err != nil {
				return fmt.Errorf("%s: %w: %+v", n.opts.NodeID, err, n.Status())
			}
		}
		return nil
	})
}

// leader is the number of the node that leads.
func (c *testCluster) leader() int {
	c.t.Helper()
	leader := -1
	eventually(c.t, 10*time.Second, "a leader", func() error {
		for i, n := range c.nodes {
			if !n.up {
				continue
			}
			if _, _, self := n.Leader(); self {
				leader = i
				return nil
			}
		}
		return fmt.Errorf("no node leads")
	})
	return leader
}

// follower is a node that runs, does not lead and knows the leader.
func (c *testCluster) follower() int {
	c.t.Helper()
	leader := c.leader()
	follower := -1
	eventually(c.t, 10*time.Second, "a follower", func() error {
		for i, n := range c.nodes {
			if id, _, _ := n.statusLeader(); n.up && i != leader && id == c.nodes[leader].opts.NodeID {
				follower = i
				return nil
			}
		}
		return fmt.Errorf("no node follows %d", leader)
	})
	return follower
}

func (n *testNode) statusLeader() (string, uint64, bool) {
	if !n.up {
		return "", 0, false
	}
	return n.Leader()
}

// eventually polls a condition.
func eventually(t testing.TB, within time.Duration, what string, cond func() error) {
	t.Helper()
	deadline := time.Now().Add(within)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	var err error
	for ; time.Now().Before(deadline); <-tick.C {
		if err = cond(); err == nil {
			return
		}
	}
	t.Fatalf("%s: not within %v: %v", what, within, err)
}

// instance is a registration like those of clients.
func instance(i int) registry.Register {
	return registry.Register{
		Service: registry.NewServiceKey("public", "", "svc"),
		Spec: registry.Spec{
			Address: registry.Address{Cluster: "DEFAULT", IP: fmt.Sprintf("10.0.%d.%d", i/250, i%250), Port: 8080},
			Weight:  1, Enabled: true, Healthy: true, Ephemeral: true,
		},
	}
}
