package nodes

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rollcall-io/rollcall/internal/loopback"
)

const (
	// patience bounds every wait of a helper.
	patience = 30 * time.Second
	pollStep = 20 * time.Millisecond
	logLines = 25
)

// Cluster is a number of node processes. Its methods are for the test's goroutine,
// except where they say otherwise.
type Cluster struct {
	t      testing.TB
	site   Site
	binary string
	args   []string
	root   string
	nodes  []*Node
	client *http.Client
}

// New makes a cluster of n nodes that do not run yet; args are added to each command
// line. The nodes are killed when the test ends, and their logs shown if it failed.
func New(t testing.TB, binary string, n int, args ...string) *Cluster {
	t.Helper()
	return NewAt(t, onLoopback{t}, binary, n, args...)
}

// NewAt is New with nodes that run somewhere else than on this host's loopback.
func NewAt(t testing.TB, site Site, binary string, n int, args ...string) *Cluster {
	t.Helper()
	transport := &http.Transport{MaxIdleConnsPerHost: 128, DialContext: site.Dial}
	c := &Cluster{t: t, site: site, binary: binary, args: args, root: t.TempDir(), client: &http.Client{Transport: transport}}
	for i := range n {
		id := fmt.Sprintf("n%d", i+1)
		node := &Node{c: c, number: i, ID: id, Dir: filepath.Join(c.root, id)}
		node.HTTP, node.Peer = site.Addresses(i)
		c.nodes = append(c.nodes, node)
	}
	if err := os.WriteFile(c.SecretFile(), []byte("a secret for tests only"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.close)
	return c
}

// Start is New with all nodes started and ready.
func Start(t testing.TB, binary string, n int, args ...string) *Cluster {
	t.Helper()
	c := New(t, binary, n, args...)
	for _, node := range c.nodes {
		node.Start()
	}
	c.WaitReady(c.nodes...)
	return c
}

// Root is a directory of the test's own, beside the nodes' directories.
func (c *Cluster) Root() string { return c.root }

// SecretFile holds the cluster's secret.
func (c *Cluster) SecretFile() string { return filepath.Join(c.root, "secret") }

// Peers are the peer addresses of all nodes as --join takes them.
func (c *Cluster) Peers() string {
	var peers []string
	for _, n := range c.nodes {
		peers = append(peers, n.Peer)
	}
	return strings.Join(peers, ",")
}

// Nodes are all nodes.
func (c *Cluster) Nodes() []*Node { return c.nodes }

// Others are all nodes but one.
func (c *Cluster) Others(but *Node) []*Node {
	var rest []*Node
	for _, n := range c.nodes {
		if n != but {
			rest = append(rest, n)
		}
	}
	return rest
}

// Until polls cond and fails the test when it stays false.
func (c *Cluster) Until(what string, cond func() bool) {
	c.t.Helper()
	c.Within(patience, what, cond)
}

// Within is Until with a patience of its own. It returns how long it took.
func (c *Cluster) Within(d time.Duration, what string, cond func() bool) time.Duration {
	c.t.Helper()
	start := time.Now()
	for !cond() {
		if time.Since(start) > d {
			c.t.Fatalf("no %s within %s", what, d)
		}
		time.Sleep(pollStep)
	}
	return time.Since(start)
}

// WaitReady waits until each of the nodes answers /readyz with 200.
func (c *Cluster) WaitReady(nodes ...*Node) {
	c.t.Helper()
	for _, n := range nodes {
		c.Until(n.ID+" ready", func() bool {
			if !n.Running() {
				c.t.Fatalf("%s ended with exit code %d instead of getting ready", n.ID, n.Exit(time.Second))
			}
			return n.Ready()
		})
	}
}

// Leader waits until some running node names a leader that runs, and returns that.
func (c *Cluster) Leader() *Node {
	c.t.Helper()
	var leader *Node
	c.Until("leader", func() bool {
		for _, n := range c.nodes {
			if !n.Running() {
				continue
			}
			named := n.NamesLeader()
			for _, m := range c.nodes {
				if m.ID == named && m.Running() {
					leader = m
					return true
				}
			}
		}
		return false
	})
	return leader
}

// Followers are the nodes other than the leader.
func (c *Cluster) Followers() []*Node {
	c.t.Helper()
	return c.Others(c.Leader())
}

// Run executes the binary with a command line of its own until it ends, at most d, and
// returns its exit code, -1 when it had to be killed, and its output.
func (c *Cluster) Run(d time.Duration, args ...string) (int, string) {
	c.t.Helper()
	cmd := exec.Command(c.binary, args...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr, cmd.Env = &out, &out, cleanEnvironment()
	if err := cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	timer := time.AfterFunc(d, func() { _ = cmd.Process.Kill() })
	defer timer.Stop()
	_ = cmd.Wait() // the exit code says it
	return cmd.ProcessState.ExitCode(), out.String()
}

// FreeAddress is a loopback address for something else.
func (c *Cluster) FreeAddress() string { return loopback.FreeAddress(c.t) }

func (c *Cluster) close() {
	for _, n := range c.nodes {
		n.Kill()
	}
	c.client.CloseIdleConnections()
	if c.t.Failed() {
		for _, n := range c.nodes {
			c.t.Log(n.tail(logLines))
		}
	}
}
