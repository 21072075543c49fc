package e2e

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
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
	// Byte by byte, since the node may have the file mapped.
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	found := 0
	for at := 0; ; found++ {
		i := bytes.Index(b[at:], []byte(text))
		if i < 0 {
			break
		}
		at += i + len(text)
		if _, err := f.WriteAt([]byte{b[at-1+behind] ^ 1}, int64(at-1+behind)); err != nil {
			t.Fatal(err)
		}
	}
	if found == 0 {
		t.Fatalf("%s holds no %q", path, text)
	}
}

// cutOff leaves so many bytes of raft.db.
func cutOff(t *testing.T, n *nodes.Node, size int64) {
	t.Helper()
	if err := os.Truncate(filepath.Join(n.Dir, "raft.db"), size); err != nil {
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
		wantMessage(t, n, n.Log()[before:])
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

// exitDamage is the exit code of a node whose data directory is damaged.
const exitDamage = 73

// wantMessage fails the test unless the node ended by itself with a message that names its
// directory, and not with the stack of a panic.
func wantMessage(t *testing.T, n *nodes.Node, said string) {
	t.Helper()
	code := n.Exit(time.Second)
	if code != exitDamage && code != 1 || !strings.Contains(said, n.Dir) || strings.Contains(said, "goroutine ") {
		t.Errorf("%s ended with %d: %s", n.ID, code, said)
	}
	if code == exitDamage && (!strings.Contains(said, "damaged") || !strings.Contains(said, "empty its data directory")) {
		t.Errorf("%s does not say what to do: %s", n.ID, said)
	}
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
		"log cut off":     func(t *testing.T, n *nodes.Node) { cutOff(t, n, 5*4096) },
		"log nearly gone": func(t *testing.T, n *nodes.Node) { cutOff(t, n, 100) },
		"identity":        func(t *testing.T, n *nodes.Node) { flip(t, filepath.Join(n.Dir, "node.json"), 20) },
	}
	// The others may be a page that is free, a head that is old, or have a second copy.
	surely := map[string]bool{"term": true, "vote": true, "log cut off": true, "log nearly gone": true, "identity": true}
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
			if surely[place] && !refused {
				t.Errorf("%s was believed", place)
			}
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
