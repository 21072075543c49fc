// Package clustertest runs clusters of whole nodes in one process, over real loopback TCP,
// with links between them that can drop, reset, delay and slow down bytes in each
// direction on its own. It is for tests only.
package clustertest

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/rollcall-io/rollcall/internal/app"
	"github.com/rollcall-io/rollcall/internal/loopback"
)

const (
	// electionTimeout is short, but leaves room for fsync and the race detector on two cores.
	electionTimeout = 300 * time.Millisecond
	// patience bounds every wait of a helper.
	patience = 30 * time.Second
)

// Cluster is a number of nodes and the links between them. Its methods are for the test's
// goroutine, except where they say otherwise.
type Cluster struct {
	t     testing.TB
	dir   string
	nodes []*Member
	links [][]*link // [from][to]
	carry sync.WaitGroup

	transport *http.Transport // of the test's own requests
}

// Member is one node of a Cluster, running or not.
type Member struct {
	c     *Cluster
	index int
	ID    string
	Dir   string
	Peer  string // the advertised peer address, the same across restarts
	Node  *app.Node
	HTTP  string // base URL while running
	tweak func(*app.Options)
}

// Start makes a cluster of n nodes and waits until all are ready. tweak, if not nil,
// changes each node's options. The cluster is stopped when the test ends, which fails it if
// goroutines or descriptors are left then; so no two of a process's tests may run at once.
func Start(t testing.TB, n int, tweak func(*app.Options)) *Cluster {
	t.Helper()
	watchLeaks(t)
	c := &Cluster{t: t, dir: t.TempDir(), transport: &http.Transport{MaxIdleConnsPerHost: 64}}
	c.links = make([][]*link, n)
	for i := range n {
		c.links[i] = make([]*link, n)
		for j := range n {
			c.links[i][j] = newLink()
		}
		c.nodes = append(c.nodes, &Member{
			c: c, index: i, ID: fmt.Sprintf("n%d", i+1), Dir: filepath.Join(c.dir, fmt.Sprintf("n%d", i+1)),
			Peer: loopback.FreeAddress(t), tweak: tweak,
		})
	}
	if err := os.WriteFile(filepath.Join(c.dir, "secret"), []byte("a secret for tests only"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.stop)
	for _, m := range c.nodes {
		m.Start()
	}
	c.WaitReady()
	return c
}

// Members are all nodes.
func (c *Cluster) Members() []*Member { return c.nodes }

// Running are the nodes that run.
func (c *Cluster) Running() []*Member {
	var up []*Member
	for _, m := range c.nodes {
		if m.Node != nil {
			up = append(up, m)
		}
	}
	return up
}

// Leader waits for a running node that says it leads.
func (c *Cluster) Leader() *Member {
	c.t.Helper()
	var leader *Member
	c.Until("a leader", func() bool {
		for _, m := range c.Running() {
			if _, _, self := m.Node.Raft().Leader(); self {
				leader = m
				return true
			}
		}
		return false
	})
	return leader
}

// Followers are the running nodes other than the leader.
func (c *Cluster) Followers() []*Member {
	c.t.Helper()
	leader := c.Leader()
	var rest []*Member
	for _, m := range c.Running() {
		if m != leader {
			rest = append(rest, m)
		}
	}
	return rest
}

// WaitReady waits until all running nodes are ready.
func (c *Cluster) WaitReady() {
	c.t.Helper()
	c.Until("all running nodes ready", func() bool {
		for _, m := range c.Running() {
			if m.Node.Raft().Ready() != nil {
				return false
			}
		}
		return true
	})
}

// Until polls cond and fails the test, with the state of every node, when it stays false.
func (c *Cluster) Until(what string, cond func() bool) {
	c.t.Helper()
	deadline := time.Now().Add(patience)
	for !cond() {
		if time.Now().After(deadline) {
			c.t.Fatalf("no %s within %s:\n%s", what, patience, c.dump())
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func (c *Cluster) dump() string {
	text := ""
	for _, m := range c.nodes {
		if m.Node == nil {
			text += m.ID + " is stopped\n"
			continue
		}
		text += fmt.Sprintf("%s ready=%v applied=%d %+v\n", m.ID, m.Node.Raft().Ready(), m.Node.State().Applied(), m.Node.Raft().Status())
	}
	return text
}

// Link sets the fault of the direction from one node to another.
func (c *Cluster) Link(from, to *Member, f Fault) { c.links[from.index][to.index].set(f) }

// Isolate sets the same fault on every link to and from a node.
func (c *Cluster) Isolate(m *Member, f Fault) {
	for _, o := range c.nodes {
		if o != m {
			c.Link(m, o, f)
			c.Link(o, m, f)
		}
	}
}

// Heal lets all links pass.
func (c *Cluster) Heal() {
	for _, m := range c.nodes {
		c.Isolate(m, Fault{})
	}
}

func (c *Cluster) stop() {
	for _, m := range c.Running() {
		m.Stop()
	}
	c.carry.Wait()
	c.transport.CloseIdleConnections()
}

// Start starts the node on its own data directory.
func (m *Member) Start() {
	m.c.t.Helper()
	o := app.DefaultOptions()
	o.NodeID, o.DataDir, o.Advertise = m.ID, m.Dir, m.Peer
	o.PeerAddr, o.HTTPAddr = m.Peer, "127.0.0.1:0"
	o.ElectionTimeout = electionTimeout
	o.Logger = hclog.New(&hclog.LoggerOptions{Name: m.ID, Level: hclog.Warn, Output: testWriter{m.c.t}})
	if len(m.c.nodes) > 1 {
		o.BootstrapExpect = len(m.c.nodes)
		for _, other := range m.c.nodes {
			o.Join = append(o.Join, other.Peer)
		}
		o.ClusterSecretFile = filepath.Join(m.c.dir, "secret")
	}
	o.DialPeer = m.dial
	o.Fatal = func(code int) { m.c.t.Errorf("%s wanted to exit with %d", m.ID, code) }
	if m.tweak != nil {
		m.tweak(&o)
	}
	node, err := app.New(o)
	if err != nil {
		m.c.t.Fatalf("%s: %v", m.ID, err)
	}
	m.Node = node
	if err := node.Start(context.Background()); err != nil {
		m.c.t.Fatalf("%s: %v", m.ID, err)
	}
	m.HTTP = "http://" + node.HTTPAddr()
}

// Stop stops the node gracefully.
func (m *Member) Stop() {
	m.c.t.Helper()
	if m.Node == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := m.Node.Stop(ctx); err != nil {
		m.c.t.Errorf("stop %s: %v", m.ID, err)
	}
	m.Node = nil
}

// Wipe removes the data of a stopped node.
func (m *Member) Wipe() {
	if err := os.RemoveAll(m.Dir); err != nil {
		m.c.t.Fatal(err)
	}
}

// dial goes through the links to the node that the address belongs to.
func (m *Member) dial(ctx context.Context, address string) (net.Conn, error) {
	for _, o := range m.c.nodes {
		if o.Peer == address {
			return dialThrough(ctx, address, m.c.links[m.index][o.index], m.c.links[o.index][m.index], &m.c.carry)
		}
	}
	return nil, fmt.Errorf("no node at %s", address)
}

// testWriter hands log lines to the test.
type testWriter struct{ t testing.TB }

func (w testWriter) Write(b []byte) (int, error) {
	w.t.Helper()
	w.t.Logf("%s", b)
	return len(b), nil
}
