package e2e

import (
	"syscall"
	"testing"
	"time"

	"github.com/rollcall-io/rollcall/test/e2e/nodes"
	"github.com/rollcall-io/rollcall/test/faults/figures"
)

// TestRollingRestart_LosesNoWriteAndRefusesNoneForLong: SIGTERM under load ended late or
// never (hashicorp/raft #268, #312).
func TestRollingRestart_LosesNoWriteAndRefusesNoneForLong(t *testing.T) {
	row := figures.Track(t, "rolling restart under load")
	c := nodes.Start(t, binary, 3)
	writers := c.Write(8, 10*time.Millisecond, c.Nodes)
	pass(time.Second)
	leader := c.Leader()
	for _, n := range append(c.Others(leader), leader) {
		asked := time.Now()
		n.Signal(syscall.SIGTERM)
		if code := n.Exit(10 * time.Second); code != 0 {
			t.Errorf("%s exits with %d on SIGTERM", n.ID, code)
		}
		t.Logf("%s stopped in %d ms", n.ID, time.Since(asked).Milliseconds())
		for _, other := range c.Others(n) {
			c.Within(time.Second, "other leader than the one that stopped, on "+other.ID, func() bool { return other.NamesLeader() != n.ID })
		}
		n.Start()
		c.WaitReady(n)
		pass(time.Second)
	}
	gap := writers.LongestGap()
	if gap > time.Second {
		t.Errorf("no write for %s, want 1 s at most", gap)
	}
	total := checkAcked(t, c, writers.Stop())
	row.Rounds = len(c.Nodes())
	row.Outage(gap)
	row.Wrote(writers.Sent(), total, 0)
	t.Logf("longest gap %s, %d writes listed on all nodes", gap, total)
}

// TestWipedNode_CatchesUpAndCountsAgain: a node with an empty disk under its old name
// panicked, voted twice or was refused for ever (etcd-io/etcd #3504, #20269;
// hashicorp/raft #502).
func TestWipedNode_CatchesUpAndCountsAgain(t *testing.T) {
	row := figures.Track(t, "one disk wiped")
	c := nodes.Start(t, binary, 3)
	before, after := block("svc", "10.0.0.1", 1000, 100, nodes.Instance{}.Lasting()), block("svc", "10.0.0.2", 1000, 100, nodes.Instance{}.Lasting())
	c.Nodes()[0].MustRegister(before...)
	wiped := c.Followers()[0]
	wiped.Kill()
	wiped.Wipe()
	c.Others(wiped)[0].MustRegister(after...)
	wiped.Start()
	start := time.Now()
	c.WaitReady(wiped)
	if n := len(wiped.Keys("svc")); n != len(before)+len(after) {
		t.Fatalf("the wiped node lists %d of %d as soon as it is ready", n, len(before)+len(after))
	}
	t.Logf("caught up in %s", time.Since(start))
	row.Rounds = 1
	row.Wrote(len(before)+len(after), len(before)+len(after), 0)
	other := c.Others(wiped)[0]
	other.Kill()
	survivor := c.Others(other)[0]
	c.Within(15*time.Second, "write of the wiped node and one other", func() bool {
		a, err := survivor.Register(nodes.Instance{Service: "svc", IP: "10.0.0.3", Port: 1}.Lasting())
		return err == nil && a.OK()
	})
}

// TestSecondProcess_OnTheSameDirectoryIsRefusedAndNamesIt: the second one waited silently
// for a lock (boltdb/bolt #562; nspcc-dev/neofs-node #1503).
func TestSecondProcess_OnTheSameDirectoryIsRefusedAndNamesIt(t *testing.T) {
	c := nodes.Start(t, binary, 1)
	n := c.Nodes()[0]
	code, out := c.Run(10*time.Second, "serve", "--node-id", n.ID, "--data-dir", n.Dir, "--http-addr", c.FreeAddress(), "--peer-addr", c.FreeAddress())
	wantRefusal(t, code, out, n.Dir)
	n.MustRegister(nodes.Instance{Service: "svc", IP: "10.0.0.1", Port: 1})
}

func TestTakenPort_IsRefusedAndNamesIt(t *testing.T) {
	c := nodes.Start(t, binary, 1)
	n := c.Nodes()[0]
	code, out := c.Run(10*time.Second, "serve", "--data-dir", t.TempDir(), "--http-addr", n.HTTP, "--peer-addr", c.FreeAddress())
	wantRefusal(t, code, out, n.HTTP)
}
