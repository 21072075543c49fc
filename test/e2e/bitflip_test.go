package e2e

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/rollcall-io/rollcall/test/e2e/nodes"
	"github.com/rollcall-io/rollcall/test/faults/figures"
)

// flip flips a bit of a file at an offset.
func flip(t *testing.T, path string, offset int) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if offset < 0 || offset >= len(b) {
		t.Fatalf("no offset %d in %s of %d bytes", offset, path, len(b))
	}
	b[offset] ^= 1
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

// flipBehind flips a bit behind every place where a text stands in raft.db: the pages of
// earlier transactions are there still, and only one of the places counts.
func flipBehind(t *testing.T, n *nodes.Node, text string, behind int) {
	t.Helper()
	path := filepath.Join(n.Dir, "raft.db")
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for at := 0; ; found++ {
		i := bytes.Index(b[at:], []byte(text))
		if i < 0 {
			break
		}
		at += i + len(text)
		b[at-1+behind] ^= 1
	}
	if found == 0 {
		t.Fatalf("%s holds no %q", path, text)
	}
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

// newest is the newest of a node's snapshot files with a name.
func newest(t *testing.T, n *nodes.Node, name string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(n.Dir, "snapshots", "*", name))
	if err != nil || len(files) == 0 {
		t.Fatalf("snapshots %v, %v", files, err)
	}
	return slices.MaxFunc(files, func(a, b string) int {
		x, errX := os.Stat(a)
		y, errY := os.Stat(b)
		if errX != nil || errY != nil {
			t.Fatal(errX, errY)
		}
		return x.ModTime().Compare(y.ModTime())
	})
}

// comesBack starts a node whose disk is damaged. It may refuse with a message, and is then
// wiped as that says; it may go on; what it lists is what all others do.
func comesBack(t *testing.T, c *nodes.Cluster, n *nodes.Node, want map[string]bool) (refused bool) {
	t.Helper()
	before := len(n.Log())
	n.Start()
	c.Until(n.ID+" ready or ended", func() bool { return !n.Running() || n.Ready() })
	if !n.Running() {
		if said := n.Log()[before:]; n.Exit(time.Second) <= 0 || said == "" {
			t.Errorf("%s ended without a word: %q", n.ID, said)
		}
		n.Wipe()
		n.Start()
		c.WaitReady(n)
		refused = true
	}
	if got := n.Keys("svc"); !sameKeys(got, want) {
		t.Errorf("%s lists %d instances as soon as it is ready, not the %d that were registered", n.ID, len(got), len(want))
	}
	return refused
}

func sameKeys(a, b map[string]bool) bool {
	if len(a) != len(b) {
		return false
	}
	for k := range b {
		if _, found := a[k]; !found {
			return false
		}
	}
	return true
}

// marked is an address that is in the log behind the newest snapshot, and in no snapshot.
const marked = "10.66.77.88"

// withSnapshot is a cluster, a follower that has made a snapshot, and what it lists.
func withSnapshot(t *testing.T) (c *nodes.Cluster, n *nodes.Node, want map[string]bool) {
	t.Helper()
	c = nodes.Start(t, binary, 3, "--snapshot-interval", "200ms", "--snapshot-entries", "60", "--trailing-logs", "1000")
	all := block("svc", "10.0.0.1", 1000, 200, nodes.Instance{}.Lasting())
	c.Nodes()[0].MustRegister(all...)
	n = c.Followers()[0]
	c.Until("a snapshot on "+n.ID, func() bool {
		found, err := filepath.Glob(filepath.Join(n.Dir, "snapshots", "*", "meta.json"))
		return err == nil && len(found) > 0 && len(unfinished(t, n)) == 0
	})
	pass(500 * time.Millisecond)
	behind := block("svc", marked, 1000, 5, nodes.Instance{}.Lasting())
	c.Nodes()[0].MustRegister(behind...)
	want = map[string]bool{}
	for _, in := range append(all, behind...) {
		want[in.Key()] = true
	}
	c.Until("everything on "+n.ID, func() bool { return sameKeys(n.Keys("svc"), want) })
	return c, n, want
}

// TestBitFlippedInALogEntry_TheNodeIsFound flips a bit in what a committed entry says. The
// log has no checksums of its own: the node lists something else than the others until
// the next comparison of digests, a minute later at most, tells which one is wrong.
func TestBitFlippedInALogEntry_TheNodeIsFound(t *testing.T) {
	if !long() {
		t.Skip("waits for a comparison of digests, a minute: in the long form")
	}
	row := figures.Track(t, "one bit flipped in a log entry")
	c, n, _ := withSnapshot(t)
	n.Kill()
	flipBehind(t, n, marked, 0)
	n.Start()
	c.WaitReady(n)
	c.Nodes()[0].MustRegister(nodes.Instance{Service: "svc", IP: "10.0.0.9", Port: 9}.Lasting())
	took := c.Within(90*time.Second, "sign of the damaged state", func() bool {
		diverged, err := n.Metric("rollcall_fsm_diverged")
		return err == nil && diverged == 1
	})
	row.Rounds = 1
	row.Note = fmt.Sprintf("found after %s", took.Round(time.Second))
}

// TestBitFlipped_NodeRefusesOrServesTheSameState flips one bit in each kind of file of a
// node that is down. The others serve on, and it never lists anything else than they do.
func TestBitFlipped_NodeRefusesOrServesTheSameState(t *testing.T) {
	row := figures.Track(t, "one bit flipped on disk")
	places := map[string]func(t *testing.T, n *nodes.Node){
		"snapshot":        func(t *testing.T, n *nodes.Node) { flip(t, newest(t, n, "state.bin"), 200) },
		"snapshot's meta": func(t *testing.T, n *nodes.Node) { flip(t, newest(t, n, "meta.json"), 40) },
		"term":            func(t *testing.T, n *nodes.Node) { flipBehind(t, n, "CurrentTerm", 6) },
		"vote":            func(t *testing.T, n *nodes.Node) { flipBehind(t, n, "LastVoteCand", 2) },
		"page of the log": func(t *testing.T, n *nodes.Node) { flip(t, filepath.Join(n.Dir, "raft.db"), 4*4096+8) },
		"first page":      func(t *testing.T, n *nodes.Node) { flip(t, filepath.Join(n.Dir, "raft.db"), 16+40) },
		"identity":        func(t *testing.T, n *nodes.Node) { flip(t, filepath.Join(n.Dir, "node.json"), 20) },
	}
	for place, damage := range places {
		t.Run(place, func(t *testing.T) {
			c, n, want := withSnapshot(t)
			n.Kill()
			damage(t, n)
			late := nodes.Instance{Service: "svc", IP: "10.0.0.9", Port: 9}.Lasting()
			c.Others(n)[0].MustRegister(late)
			want[late.Key()] = true
			refused := comesBack(t, c, n, want)
			row.Rounds++
			row.Wrote(len(want), len(want), 0)
			t.Logf("refused: %v", refused)
			for _, other := range c.Nodes() {
				if got := other.Keys("svc"); !sameKeys(got, want) {
					t.Errorf("%s lists %d of %d", other.ID, len(got), len(want))
				}
			}
			wantSameState(t, c)
		})
	}
	row.Note = fmt.Sprintf("%d places", len(places))
}
