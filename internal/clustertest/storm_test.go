package clustertest

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/rollcall-io/rollcall/registry"
	"github.com/rollcall-io/rollcall/test/faults/figures"
)

// fleet registers n instances in services of 500 with their timeouts, on the leader.
func fleet(t *testing.T, c *Cluster, name string, n, downMs, goneMs int) {
	t.Helper()
	metadata := registry.NewMetadata([]registry.Pair{
		{Key: "preserved.heart.beat.interval", Value: "1000"},
		{Key: "preserved.heart.beat.timeout", Value: fmt.Sprint(downMs)},
		{Key: "preserved.ip.delete.timeout", Value: fmt.Sprint(goneMs)},
	})
	raft := c.Leader().Node.Raft()
	var wg sync.WaitGroup
	const clients = 64
	for k := range clients {
		wg.Go(func() {
			for i := k; i < n; i += clients {
				command := registry.Register{
					Service: registry.NewServiceKey("", "", fmt.Sprintf("%s-%d", name, i/500)),
					Spec: registry.Spec{
						Address:   registry.Address{IP: "10.5.0.1", Port: uint16(1 + i), Cluster: "DEFAULT"},
						Ephemeral: true, Enabled: true, Healthy: true, Weight: 1, Metadata: metadata,
					},
				}
				_, err := raft.Propose(context.Background(), command)
				for end := time.Now().Add(patience); err != nil && time.Now().Before(end); { // an election: once more
					_, err = raft.Propose(context.Background(), command)
				}
				if err != nil {
					t.Errorf("register: %v", err)
					return
				}
			}
		})
	}
	wg.Wait()
}

// slowestWrite is the longest that one of a hundred writes takes.
func slowestWrite(c *Cluster) (worst time.Duration) {
	for i := range 100 {
		start := time.Now()
		c.nodes[i%3].MustRegister("usual", "10.7.0.1", 1+i, long)
		worst = max(worst, time.Since(start))
	}
	return worst
}

// countOf counts what is left of a fleet of n, as a node has it.
func countOf(m *Member, name string, n int) (left int) {
	for i := 0; i <= (n-1)/500; i++ {
		if svc := m.Node.State().Service(registry.NewServiceKey("", "", fmt.Sprintf("%s-%d", name, i))); svc != nil {
			left += svc.Len()
		}
	}
	return left
}

// TestCluster_ManyLeasesExpireAtOnceBesideWrites lets 15 of 100 instances fall silent in
// the same moment. Their flips and evictions take few entries, and writes go on.
func TestCluster_ManyLeasesExpireAtOnceBesideWrites(t *testing.T) {
	row := figures.Track(t, "many leases expire in one second")
	c := Start(t, 3, nil)
	all := 10_000
	if longForm() {
		all = 60_000
	}
	silent := all * 15 / 100
	fleet(t, c, "lasting", all-silent, 600_000, 900_000)
	usual := slowestWrite(c) // what this machine takes with nothing going on
	fleet(t, c, "silent", silent, 4000, 7000)
	leader := c.Leader()
	registered := time.Now()
	before := leader.Node.State().Applied()
	var took []time.Duration
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	sent := 0
	for left := silent; left > 0; left = countOf(leader, "silent", silent) {
		if time.Since(registered) > 40*time.Second {
			t.Fatalf("%d instances still there %s after they fell silent", left, time.Since(registered))
		}
		start := time.Now()
		a, err := c.nodes[sent%3].Register("beside", "10.6.0.1", 1+sent, long)
		if sent++; err == nil && a.Status == http.StatusOK {
			took = append(took, time.Since(start))
		}
		<-tick.C
	}
	entries := int(leader.Node.State().Applied()-before) - sent
	// On a machine that does much else there may be an election.
	if refused := sent - len(took); refused > sent/20 {
		t.Fatalf("%d of %d writes were not acknowledged", refused, sent)
	}
	slices.Sort(took)
	p99 := took[len(took)*99/100]
	if limit := max(500*time.Millisecond, 2*usual); p99 > limit {
		t.Errorf("p99 of writes %s, want %s at most", p99, limit)
	}
	if limit := 20 + 2*silent/100; entries > limit {
		t.Errorf("%d entries for %d expiries, want %d at most", entries, silent, limit)
	}
	row.Rounds = 1
	row.Outage(took[len(took)-1])
	row.Wrote(sent, len(took), 0)
	row.Note = fmt.Sprintf("%d of %d expired in %d entries, p99 of writes %s", silent, all, entries, p99.Round(time.Millisecond))
	t.Log(row.Note)
}
