package e2e

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rollcall-io/rollcall/test/e2e/nodes"
	"github.com/rollcall-io/rollcall/test/faults/figures"
)

// diskSize is the size of each node's disk: more than what must be free for writes, and
// that is all in memory.
const diskSize = "700m"

// onSmallDisks gives each node of a cluster a file system of its own.
func onSmallDisks(t *testing.T, c *nodes.Cluster) {
	t.Helper()
	for _, n := range c.Nodes() {
		if err := os.MkdirAll(n.Dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size="+diskSize, "tmpfs", n.Dir).CombinedOutput(); err != nil {
			t.Skipf("a small disk for each node needs the right to mount one: %v: %s", err, out)
		}
		t.Cleanup(func() {
			n.Kill()
			if out, err := exec.Command("umount", n.Dir).CombinedOutput(); err != nil {
				t.Errorf("umount %s: %v: %s", n.Dir, err, out)
			}
		})
	}
}

// fill writes zeros to a file on the node's disk until so many bytes are there, or the
// disk is full.
func fill(t *testing.T, n *nodes.Node, bytesWanted int) {
	t.Helper()
	f, err := os.OpenFile(filepath.Join(n.Dir, "ballast"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for zeros := make([]byte, 1<<20); bytesWanted > 0; bytesWanted -= len(zeros) {
		if _, err := f.Write(zeros[:min(bytesWanted, len(zeros))]); err != nil {
			return // full
		}
	}
}

// makeRoom frees the disk of a node and waits until it is ready. It may have ended with a
// clear message; before is what it had printed until then.
func makeRoom(t *testing.T, c *nodes.Cluster, n *nodes.Node, before string) {
	t.Helper()
	if err := os.Remove(filepath.Join(n.Dir, "ballast")); err != nil {
		t.Fatal(err)
	}
	if !n.Running() {
		if said := strings.TrimPrefix(n.Log(), before); !strings.Contains(said, "space") {
			t.Errorf("%s ended without a word about space: %s", n.ID, said)
		}
		n.Start()
	}
	c.WaitReady(n)
}

// TestLeadersDiskFull_WritesGoOnElsewhereAndNoneIsLost: a leader that could not append kept
// the lead, and the cluster took no writes (hashicorp/consul #665; etcd-io/etcd #3068;
// hashicorp/vault #14372).
func TestLeadersDiskFull_WritesGoOnElsewhereAndNoneIsLost(t *testing.T) {
	row := figures.Track(t, "disk full on the leader")
	c := nodes.New(t, binary, 3)
	onSmallDisks(t, c)
	for _, n := range c.Nodes() {
		n.Start()
	}
	c.WaitReady(c.Nodes()...)
	writers := c.Write(4, 20*time.Millisecond, c.Nodes)
	full := c.Leader()
	before := full.Log()

	fill(t, full, 300<<20) // under 512 MiB are free: refused clearly, while it leads
	c.Within(10*time.Second, "refusal for want of disk", func() bool {
		a, err := full.Register(nodes.Instance{Service: "svc", IP: "10.0.0.1", Port: 80}.Lasting())
		return err == nil && a.Status == http.StatusServiceUnavailable && strings.Contains(a.Body, "disk")
	})

	filled := time.Now()
	fill(t, full, 1<<30) // to the brim
	var back time.Time
	c.Within(20*time.Second, "write after the leader's disk was full", func() bool {
		back = writers.SentAfter(filled)
		return !back.IsZero()
	})
	if outage := back.Sub(filled); outage > 10*time.Second {
		t.Errorf("writes were back after %s, want 10 s at most", outage)
	} else {
		t.Logf("outage %s", outage)
	}
	pass(2 * time.Second)
	if leader := c.Leader(); leader == full {
		t.Errorf("%s leads although its disk is full", full.ID)
	}

	makeRoom(t, c, full, before)
	total := checkAcked(t, c, writers.Stop())
	row.Rounds = 1
	row.Outage(back.Sub(filled))
	row.Wrote(writers.Sent(), total, 0)
	t.Logf("%d acknowledged writes listed on all nodes", total)
}

// TestFollowersDiskFull_CostsTheClusterNothing: a follower that cannot append falls behind
// or ends, and the others go on as if it were away.
func TestFollowersDiskFull_CostsTheClusterNothing(t *testing.T) {
	row := figures.Track(t, "disk full on a follower")
	// The disk is memory: filling it holds up a busy machine for longer than the default.
	c := nodes.New(t, binary, 3, "--election-timeout", "3s")
	onSmallDisks(t, c)
	for _, n := range c.Nodes() {
		n.Start()
	}
	c.WaitReady(c.Nodes()...)
	leader, full := c.Leader(), c.Followers()[0]
	rest := c.Others(full)
	writers := c.Write(4, 20*time.Millisecond, func() []*nodes.Node { return rest })
	pass(time.Second)
	before := full.Log()
	fill(t, full, 1<<30)
	pass(5 * time.Second)
	gap := writers.LongestGap()
	if gap > 2*time.Second { // less than any election takes
		t.Errorf("no write for %s while a follower's disk is full, want 2 s at most", gap)
	}
	if now := c.Leader(); now != leader {
		t.Errorf("%s leads, it was %s before a follower's disk was full", now.ID, leader.ID)
	}
	makeRoom(t, c, full, before)
	total := checkAcked(t, c, writers.Stop())
	row.Rounds = 1
	row.Outage(gap)
	row.Wrote(writers.Sent(), total, 0)
}
