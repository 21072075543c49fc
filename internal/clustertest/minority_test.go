package clustertest

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/rollcall-io/rollcall/test/faults/figures"
)

// TestCluster_LeaderInAMinorityServesNoLinearizableRead: the leader does not know yet that
// it is cut off, while others write what it cannot see.
func TestCluster_LeaderInAMinorityServesNoLinearizableRead(t *testing.T) {
	row := figures.Track(t, "leader in a minority")
	for name, fault := range map[string]Fault{"mute": {Drop: true}, "cut": {Reset: true}} {
		t.Run(name, func(t *testing.T) {
			c := Start(t, 3, nil)
			old := c.Leader()
			old.MustRegister("svc", "10.0.0.1", 1, long)
			c.Isolate(old, fault)
			cut := time.Now()
			for asked := 0; time.Since(cut) < 2500*time.Millisecond; asked++ {
				a, err := old.Do(http.MethodGet, "/instance/list", "serviceName=svc&consistency=linearizable")
				if err == nil && a.Status == http.StatusOK {
					t.Fatalf("linearizable read %s after the cut: %s", time.Since(cut), a.Body)
				}
				row.Operations = max(row.Operations, 0) + 1
			}
			if hosts, err := old.List("svc"); err != nil || len(hosts) != 1 {
				t.Errorf("local read of the node that is cut off: %d hosts, %v", len(hosts), err)
			}
			if a, err := old.Beat("svc", "10.0.0.1", 1); err != nil || a.Status != http.StatusServiceUnavailable && !strings.Contains(a.Body, "10200") {
				t.Errorf("beat: %d %q %v", a.Status, a.Body, err)
			}
			var other *Member
			c.Until("another leader", func() bool {
				for _, m := range c.Running() {
					if _, _, self := m.Node.Raft().Leader(); self && m != old {
						other = m
					}
				}
				return other != nil
			})
			index := old.Node.State().Applied()
			other.MustRegister("svc", "10.0.0.2", 2, long)
			if applied := old.Node.State().Applied(); applied != index {
				t.Errorf("the node that is cut off went from index %d to %d", index, applied)
			}
			c.Heal()
			c.Until("both instances on the node that was cut off", func() bool { return old.Healthy("svc") == 2 })
			row.Rounds++
			row.Wrote(2, 2, 0)
		})
	}
}
