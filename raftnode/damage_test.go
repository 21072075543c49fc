package raftnode

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// damageNewestSnapshot flips a bit in the newest snapshot of a stopped node.
func (c *testCluster) damageNewestSnapshot(i int) {
	c.t.Helper()
	files, err := filepath.Glob(filepath.Join(c.nodes[i].opts.DataDir, "snapshots", "*", "state.bin"))
	if err != nil || len(files) == 0 {
		c.t.Fatalf("snapshots %v, %v", files, err)
	}
	slices.SortFunc(files, func(a, b string) int {
		x, _ := os.Stat(a)
		y, _ := os.Stat(b)
		return x.ModTime().Compare(y.ModTime())
	})
	newest := files[len(files)-1]
	b, err := os.ReadFile(newest)
	if err != nil {
		c.t.Fatal(err)
	}
	b[len(b)/2] ^= 4
	if err := os.WriteFile(newest, b, 0o600); err != nil {
		c.t.Fatal(err)
	}
}

// snapshots lets a node make two snapshots with entries in between.
func (c *testCluster) snapshots(i int) {
	c.t.Helper()
	for k := range 2 {
		c.fill(i, k*100, k*100+100, 0)
		if err := c.nodes[i].raft.Load().Snapshot().Error(); err != nil {
			c.t.Fatal(err)
		}
	}
}

// TestDamage_OlderSnapshotServesWhenTheLogReachesBack flips a bit in the newest snapshot:
// the one before and the log give the same state.
func TestDamage_OlderSnapshotServesWhenTheLogReachesBack(t *testing.T) {
	c := startCluster(t, 3, nil)
	f := c.follower()
	c.snapshots(f)
	c.stop(f)
	c.damageNewestSnapshot(f)
	c.start(f)
	c.waitReady()
	if got := c.nodes[f].fsm.count(); got != 200 {
		t.Errorf("%d of 200 instances", got)
	}
}

// TestDamage_GapBehindAnOlderSnapshotIsAnErrorOfStart: the log was cut off behind the
// snapshot that is damaged now. Raft would panic at the first missing entry.
func TestDamage_GapBehindAnOlderSnapshotIsAnErrorOfStart(t *testing.T) {
	c := startCluster(t, 3, func(_ int, o *Options) { o.TrailingLogs = 1 })
	f := c.follower()
	c.snapshots(f)
	c.stop(f)
	c.damageNewestSnapshot(f)
	n, err := Open(c.nodes[f].opts, newTestFSM())
	if err != nil {
		t.Fatal(err)
	}
	err = n.Start(context.Background())
	wantAdvice(t, err, c.nodes[f].opts.DataDir, "empty its data directory and start it again")
	if err := n.Stop(context.Background()); err != nil {
		t.Fatal(err)
	}
	// As the message says.
	if err := os.RemoveAll(c.nodes[f].opts.DataDir); err != nil {
		t.Fatal(err)
	}
	c.start(f)
	c.waitReady()
	eventually(t, 15*time.Second, "everything again", func() error {
		if c.nodes[f].fsm.count() != 200 {
			return errors.New("missing")
		}
		return nil
	})
}

// wantAdvice fails the test unless an error names the damaged directory, says what to do
// and asks for the exit code.
func wantAdvice(t *testing.T, err error, dir, advice string) {
	t.Helper()
	coded := (interface{ ExitCode() int })(nil)
	if !errors.As(err, &coded) || coded.ExitCode() != ExitDamage {
		t.Errorf("no exit code: %v", err)
	}
	if err == nil || !strings.Contains(err.Error(), "damaged") || !strings.Contains(err.Error(), dir) || !strings.Contains(err.Error(), advice) {
		t.Errorf("error %v", err)
	}
}

// TestDamage_ALoneNodeIsNotToldToRejoin: there is nobody to get the state from.
func TestDamage_ALoneNodeIsNotToldToRejoin(t *testing.T) {
	c := startCluster(t, 1, nil)
	c.fill(0, 0, 50, 0)
	o := c.nodes[0].opts
	c.stop(0)
	if err := os.Truncate(filepath.Join(o.DataDir, "raft.db"), 3*4096); err != nil {
		t.Fatal(err)
	}
	_, err := Open(o, newTestFSM())
	wantAdvice(t, err, o.DataDir, "put back a copy")
}
