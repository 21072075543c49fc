package field

import (
	"fmt"
	"io/fs"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rollcall-io/rollcall/internal/app"
	"github.com/rollcall-io/rollcall/internal/clustertest"
)

// fill registers instances of a service, ports from..to-1, several at a time. What an
// election refused is sent again.
func fill(t *testing.T, c *cluster, service string, from, to int, more ...string) {
	t.Helper()
	const clients = 12
	nodes := c.Running()
	var wg sync.WaitGroup
	for k := range clients {
		wg.Go(func() {
			for port := from + k; port < to; port += clients {
				end := time.Now().Add(30 * time.Second)
				a, err := nodes[port%len(nodes)].Register(service, "10.1.0.1", port, more...)
				for err == nil && a.Status == http.StatusServiceUnavailable && time.Now().Before(end) {
					a, err = nodes[port%len(nodes)].Register(service, "10.1.0.1", port, more...)
				}
				if err != nil || a.Status != http.StatusOK {
					t.Errorf("register port %d: %v %+v", port, err, a)
					return
				}
			}
		})
	}
	wg.Wait()
}

// size is that of all files of a node, in bytes.
func size(t *testing.T, m *member) (total int64) {
	t.Helper()
	err := filepath.WalkDir(m.Dir, func(_ string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return nil // a snapshot that is just being dropped
		}
		if info, err := e.Info(); err == nil {
			total += info.Size()
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return total
}

// TestLogOfChanges_DoesNotGrowForEver: compaction did not happen, so that disk and start-up
// time grew without end (hashicorp/consul #866, #21875, #5181, #157, #1069;
// ArcadeData/arcadedb #5345).
func TestLogOfChanges_DoesNotGrowForEver(t *testing.T) {
	const round, rounds = 600, 5
	c := clustertest.Start(t, 3, func(o *app.Options) {
		o.SnapshotEntries, o.SnapshotInterval, o.TrailingLogs = 100, 100*time.Millisecond, 50
	})
	padding := "metadata=k%3D" + strings.Repeat("v", 2000)
	largest := make([]int64, rounds)
	for r := range rounds {
		fill(t, c, "svc", 0, round/2, padding, fmt.Sprintf("weight=%d", r+1))
		fill(t, c, "svc", 0, round/2, padding, fmt.Sprintf("weight=%d", 100+r))
		for _, m := range c.Members() {
			c.Until("a snapshot of what was written on "+m.ID, func() bool {
				s := m.Node.Raft().Status()
				return s.SnapshotIndex > 0 && s.LastIndex-s.SnapshotIndex < 300
			})
			largest[r] = max(largest[r], size(t, m))
		}
	}
	t.Logf("largest directory after each %d changes of %d bytes: %v", round, len(padding), largest)
	if first, last := largest[1], largest[rounds-1]; last > 2*first {
		t.Errorf("a directory grew from %d to %d bytes", first, last)
	}
	for _, m := range c.Members() {
		m.Stop()
		m.Start()
		c.WaitReady()
		if n := m.Healthy("svc"); n != round/2 {
			t.Errorf("%s lists %d of %d after its start", m.ID, n, round/2)
		}
	}
}

// TestShutdown_EndsWhateverGoesOn: a stop in a snapshot, while catching up or without a
// leader never ended, and the supervisor killed the process (hashicorp/raft #268, #312).
// Stop has ten seconds here, and the next start must be clean.
func TestShutdown_EndsWhateverGoesOn(t *testing.T) {
	const instances = 800
	c := clustertest.Start(t, 3, func(o *app.Options) {
		o.SnapshotEntries, o.SnapshotInterval, o.TrailingLogs = 1, 10*time.Millisecond, 10
	})
	fill(t, c, "svc", 0, instances, lasting)
	again := func(m *member, when string) {
		t.Helper()
		m.Start()
		c.WaitReady()
		if n := m.Healthy("svc"); n < instances {
			t.Errorf("%s lists %d of %d after a stop %s", m.ID, n, instances, when)
		}
	}

	for i := range 6 { // each change is followed by a snapshot
		m := c.Members()[i%3]
		fill(t, c, "other", i, i+1, lasting)
		<-time.After(time.Duration(i) * 5 * time.Millisecond)
		m.Stop()
		again(m, "in a snapshot")
	}

	behind := c.Followers()[0]
	for i := range 4 { // the log that it lacks is gone: it is sent a snapshot
		behind.Stop()
		fill(t, c, "more", 100*i, 100*i+100, lasting)
		behind.Start()
		<-time.After(time.Duration(i) * 100 * time.Millisecond)
	}
	behind.Stop()
	again(behind, "while it caught up")

	last := c.Followers()[0]
	c.Isolate(last, clustertest.Fault{Drop: true})
	c.Until("no leader for "+last.ID, func() bool { id, _, _ := last.Node.Raft().Leader(); return id == "" })
	var waiting sync.WaitGroup
	for port := range 8 { // these wait for a leader, and must be answered
		waiting.Go(func() {
			if a, err := last.Register("late", "10.1.0.1", port, lasting); err == nil && a.Status != http.StatusServiceUnavailable {
				t.Errorf("a write without a leader: %d %s", a.Status, a.Body)
			}
		})
	}
	last.Stop()
	waiting.Wait()
	c.Heal()
	again(last, "without a leader")
}

// TestBigSnapshots_HoldUpNeitherBeatsNorWrites: a snapshot copied everything under the lock;
// memory doubled and beats stood still for seconds (rqlite/rqlite #273, #1297, #1016).
func TestBigSnapshots_HoldUpNeitherBeatsNorWrites(t *testing.T) {
	const instances, beaters = 1200, 8
	c := clustertest.Start(t, 3, func(o *app.Options) {
		o.SnapshotEntries, o.SnapshotInterval, o.TrailingLogs = 1, 100*time.Millisecond, 100
	})
	lives := timeouts(3000, 90_000, 180_000)
	padded := strings.Replace(lives, "metadata=%7B", "metadata=%7B%22k%22%3A%22"+strings.Repeat("v", 1000)+"%22%2C", 1)
	fill(t, c, "svc", 0, instances, padded)
	first := c.Leader().Node.Raft().Status().SnapshotIndex
	cr := crowd{c: c, done: make(chan struct{})}
	cr.join(2, func(m *member, k, i int) { _, _ = m.Register(fmt.Sprintf("other-%d", k), "10.1.0.2", i%60000, lasting) })
	var mu sync.Mutex
	var took []time.Duration
	cr.join(beaters, func(m *member, k, i int) {
		start := time.Now()
		a, err := m.Beat("svc", "10.1.0.1", (i*beaters+k)%instances)
		mu.Lock()
		defer mu.Unlock()
		if took = append(took, time.Since(start)); err != nil || !strings.Contains(a.Body, `"code":10200`) && a.Status != http.StatusServiceUnavailable {
			t.Errorf("beat: %v %+v", err, a)
		}
	})
	var snapshots []uint64
	start := time.Now()
	enough := func() bool {
		return time.Since(start) > 8*time.Second && len(snapshots) > 2 || time.Since(start) > time.Minute
	}
	for ; !enough() && !t.Failed(); <-time.After(500 * time.Millisecond) {
		for _, m := range c.Members() {
			if n := m.Healthy("svc"); n != instances {
				t.Errorf("%s shows %d healthy of %d that beat", m.ID, n, instances)
			}
		}
		snapshots = slices.Compact(append(snapshots, c.Leader().Node.Raft().Status().SnapshotIndex))
	}
	cr.end()
	slices.Sort(took)
	t.Logf("%d beats, 99th of 100 %s, the longest %s; %d snapshots", len(took), took[len(took)*99/100], took[len(took)-1], len(snapshots))
	if len(snapshots) < 3 || snapshots[len(snapshots)-1] <= first {
		t.Errorf("snapshots were taken at %v, the first at %d", snapshots, first)
	}
}
