package main_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/rollcall-io/rollcall/test/e2e/nodes"
)

// start builds the provider and runs it against the nodes.
func start(t *testing.T, c *nodes.Cluster) *exec.Cmd {
	t.Helper()
	binary := filepath.Join(c.Root(), "provider")
	if out, err := exec.Command("go", "build", "-o", binary, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	servers := ""
	for _, n := range c.Nodes() {
		servers += "," + n.HTTP
	}
	cmd := exec.Command(binary, "-servers", servers[1:], "-drain", "100ms")
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() }) // it may have ended
	return cmd
}

// listed tells whether every node lists this many healthy instances.
func listed(c *nodes.Cluster, want int) func() bool {
	return func() bool {
		for _, n := range c.Nodes() {
			hosts, err := n.List("hello")
			if err != nil {
				return false
			}
			healthy := 0
			for _, h := range hosts {
				if h.Healthy {
					healthy++
				}
			}
			if healthy != want {
				return false
			}
		}
		return true
	}
}

// restart starts nodes and waits until all are ready.
func restart(c *nodes.Cluster, which ...*nodes.Node) {
	for _, n := range which {
		n.Start()
	}
	c.WaitReady(c.Nodes()...)
}

// A provider lives through the death of the leader, of a follower and of all nodes, and
// is gone from the lists at once when it is told to end.
func TestProvider_LivesThroughDeathsAndLeavesAtOnce(t *testing.T) {
	dir := t.TempDir()
	rollcall, err := nodes.Build(dir)
	if err != nil {
		t.Fatal(err)
	}
	c := nodes.Start(t, rollcall, 3)
	provider := start(t, c)
	c.Until("the provider listed", listed(c, 1))

	stop := c.Watch("hello", 1)
	leader := c.Leader()
	leader.Kill()
	c.Leader()
	restart(c, leader)
	follower := c.Others(c.Leader())[0]
	follower.Kill()
	restart(c, follower)
	c.Until("the provider listed after two deaths", listed(c, 1))
	if seen := stop(); len(seen) > 0 {
		t.Errorf("not always there: %v", seen)
	}

	for _, n := range c.Nodes() {
		n.Kill()
	}
	restart(c, c.Nodes()...)
	c.Until("the provider listed after the death of all", listed(c, 1))

	if err := provider.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	took := c.Within(3*time.Second, "the provider gone", listed(c, 0))
	t.Logf("gone %s after SIGTERM", took.Round(time.Millisecond))
	if err := provider.Wait(); err != nil {
		t.Errorf("the provider ended with %v", err)
	}
}
