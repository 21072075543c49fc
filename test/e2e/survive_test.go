package e2e

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rollcall-io/rollcall/test/e2e/nodes"
	"github.com/rollcall-io/rollcall/test/faults/figures"
)

// TestAllPaused_NobodyWhoBeatsIsCalledUnhealthyAfterwards: after a pause of all nodes that
// is longer than every timeout, those who beat again have all the time that they had.
func TestAllPaused_NobodyWhoBeatsIsCalledUnhealthyAfterwards(t *testing.T) {
	row := figures.Track(t, "all nodes stand still")
	c := nodes.Start(t, binary, 3)
	alive := block("alive", "10.9.0.1", 2000, 50, brief)
	c.Nodes()[0].MustRegister(alive...)
	stopBeats := c.KeepBeating(alive...)
	defer stopBeats()
	for range either(1, 3) {
		notes := c.Watch("alive", len(alive))
		stopped := time.Now()
		for _, n := range c.Nodes() {
			n.Signal(syscall.SIGSTOP)
		}
		pass(either(brief.Delete+2*time.Second, 40*time.Second)) // nobody can beat meanwhile
		for _, n := range c.Nodes() {
			n.Signal(syscall.SIGCONT)
		}
		resumed := time.Now()
		c.Within(15*time.Second, "write after the pause", func() bool {
			a, err := c.Nodes()[0].Register(nodes.Instance{Service: "probe", IP: "10.8.0.1", Port: 1})
			return err == nil && a.OK()
		})
		t.Logf("paused %s, writes were back after %s", resumed.Sub(stopped), time.Since(resumed))
		pass(brief.Delete + time.Second)
		seen := notes()
		row.Rounds++
		row.FalseEvictions = max(row.FalseEvictions, 0) + len(seen)
		row.Outage(time.Since(resumed) - brief.Delete - time.Second)
		if len(seen) > 0 {
			t.Errorf("%d false sights, the first: %s", len(seen), seen[0])
		}
	}
}

// TestTwoDisksWiped_TheSurvivorsDataIsKept: two empty nodes must not form a cluster of
// their own, nor empty the one that has the data.
func TestTwoDisksWiped_TheSurvivorsDataIsKept(t *testing.T) {
	row := figures.Track(t, "two of three disks wiped")
	c := nodes.Start(t, binary, 3)
	all := block("svc", "10.0.0.1", 1000, 50, nodes.Instance{}.Lasting())
	c.Nodes()[0].MustRegister(all...)
	survivor := c.Followers()[0]
	c.Until("everything on the survivor", func() bool { return len(survivor.Keys("svc")) == len(all) })
	for _, n := range c.Nodes() {
		n.Kill()
	}
	for _, n := range c.Others(survivor) {
		n.Wipe()
	}
	for _, n := range c.Nodes() {
		n.Start()
	}
	for end := time.Now().Add(either(8*time.Second, 30*time.Second)); time.Now().Before(end); pass(100 * time.Millisecond) {
		for _, n := range c.Nodes() {
			if keys := n.Keys("svc"); keys != nil && len(keys) != len(all) {
				t.Fatalf("%s lists %d of %d", n.ID, len(keys), len(all))
			}
			if a, err := n.Register(nodes.Instance{Service: "other", IP: "10.0.0.2", Port: 1}); err == nil && a.Status != http.StatusServiceUnavailable && !a.OK() {
				t.Fatalf("%s answers a registration %d %q", n.ID, a.Status, a.Body)
			}
		}
	}
	survivor.Kill()
	if !holds(t, survivor.Dir, "10.0.0.1") {
		t.Errorf("%s holds nothing of the %d instances any more", survivor.Dir, len(all))
	}
	row.Rounds = 1
	row.Wrote(len(all), len(all), 0)
}

// holds tells whether a text is in any file of a directory.
func holds(t *testing.T, dir, text string) bool {
	t.Helper()
	found := false
	err := filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		found = found || strings.Contains(string(b), text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// TestAllAddressesChanged_AtOnce: nobody is where the disks say, and the join list tells.
func TestAllAddressesChanged_AtOnce(t *testing.T) {
	row := figures.Track(t, "all addresses changed at once")
	c := nodes.Start(t, binary, 3)
	all := block("svc", "10.0.0.1", 1000, 50, nodes.Instance{}.Lasting())
	c.Nodes()[0].MustRegister(all...)
	for range either(1, 5) {
		for _, n := range c.Nodes() {
			n.Kill()
			n.HTTP, n.Peer = c.FreeAddress(), c.FreeAddress()
		}
		start := time.Now()
		for _, n := range c.Nodes() {
			n.Start()
		}
		c.WaitReady(c.Nodes()...)
		row.Outage(time.Since(start))
		row.Rounds++
		for _, n := range c.Nodes() {
			if keys := n.Keys("svc"); len(keys) != len(all) {
				t.Fatalf("%s lists %d of %d", n.ID, len(keys), len(all))
			}
		}
	}
	row.Wrote(len(all), len(all), 0)
}

// TestAllAddressesChanged_OneNodeAfterTheOther: the addresses that were kept on disk were
// those of before, and no leader was found (hashicorp/consul #457, #1580; rqlite/rqlite
// #1293; alibaba/nacos #5911).
func TestAllAddressesChanged_OneNodeAfterTheOther(t *testing.T) {
	row := figures.Track(t, "all addresses changed, one by one")
	c := nodes.Start(t, binary, 3)
	all := block("svc", "10.0.0.1", 1000, 50, nodes.Instance{}.Lasting())
	c.Nodes()[0].MustRegister(all...)
	for i := range either(3, 9) {
		n := c.Nodes()[i%3]
		n.Signal(syscall.SIGTERM)
		if code := n.Exit(15 * time.Second); code != 0 {
			t.Errorf("%s exits with %d on SIGTERM", n.ID, code)
		}
		n.HTTP, n.Peer = c.FreeAddress(), c.FreeAddress()
		start := time.Now()
		n.Start()
		c.WaitReady(n)
		took := time.Since(start)
		row.Rounds++
		t.Logf("%s ready %s after the start under a new address", n.ID, took)
		if keys := n.Keys("svc"); len(keys) != len(all)+i {
			t.Fatalf("%s lists %d of %d", n.ID, len(keys), len(all)+i)
		}
		n.MustRegister(nodes.Instance{Service: "svc", IP: "10.0.0.2", Port: 1 + i}.Lasting())
		for _, m := range c.Nodes() {
			c.Until("the new one on "+m.ID, func() bool { return len(m.Keys("svc")) == len(all)+i+1 })
		}
	}
	row.Wrote(len(all)+row.Rounds, len(all)+row.Rounds, 0)
}
