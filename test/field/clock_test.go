package field

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/rollcall-io/rollcall/internal/app"
	"github.com/rollcall-io/rollcall/internal/clustertest"
)

// TestClocksOfNodesDiffer_NobodyExpiresEarlyOrLate: nodes compared wall-clock stamps of
// one another; with a minute between them instances died at once, or news were taken for
// old (alibaba/nacos #1529, #14042). The lead goes to each node in turn.
func TestClocksOfNodesDiffer_NobodyExpiresEarlyOrLate(t *testing.T) {
	skew := map[string]time.Duration{"n1": 0, "n2": time.Minute, "n3": -time.Minute}
	c := clustertest.Start(t, 3, func(o *app.Options) {
		d := skew[o.NodeID]
		o.WallClock = func() time.Time { return time.Now().Add(d) }
	})
	stamp := int64(0)
	for _, m := range c.Members() {
		lead(t, c, m)
		underLeader(t, c, "svc-"+m.ID)
		m.MustRegister("stamped", "10.1.0.1", 1, "metadata=by%3D"+m.ID)
		now := lastRefTime(t, m, "stamped")
		if now <= stamp {
			t.Errorf("lastRefTime went from %d to %d when %s led", stamp, now, m.ID)
		}
		stamp = now
	}
}

// lead brings the lead to a node: whoever else leads is cut off, and one of the other two
// is elected, until it is the right one.
func lead(t *testing.T, c *cluster, wanted *member) {
	t.Helper()
	for range 40 {
		old := agreed(c)
		if old == wanted {
			return
		}
		c.Isolate(old, clustertest.Fault{Reset: true})
		awaitOther(c, old)
		c.Heal()
		c.WaitReady()
	}
	t.Fatalf("%s was not elected in 40 elections", wanted.ID)
}

// underLeader registers a beating and a silent instance and looks how long each lives.
func underLeader(t *testing.T, c *cluster, service string) {
	t.Helper()
	m := c.Followers()[0]
	m.MustRegister(service, "10.1.0.1", 1, short)
	registered := time.Now() // or a little later
	m.MustRegister(service, "10.1.0.1", 2, short)
	stop := beating(c, 1, func(m *member, _ int) bool {
		a, err := m.Beat(service, "10.1.0.1", 1)
		return err == nil && a.Status == http.StatusOK
	})
	defer stop()
	for _, m := range c.Members() {
		c.Until("only the beating instance of "+service+" on "+m.ID, func() bool {
			hosts, err := m.List(service)
			if err == nil && len(hosts) > 0 && (hosts[len(hosts)-1].Port == 1 && !hosts[len(hosts)-1].Healthy) {
				t.Fatalf("%s calls the beating instance unhealthy", m.ID)
			}
			return err == nil && len(hosts) == 1 && hosts[0].Port == 1 && hosts[0].Healthy
		})
	}
	if took := time.Since(registered); took <= 6*time.Second || took > 25*time.Second {
		t.Errorf("the silent instance of %s left after %s, want 6 s", service, took)
	}
}

func lastRefTime(t *testing.T, m *member, service string) int64 {
	t.Helper()
	a, err := m.Do(http.MethodGet, "/instance/list", "serviceName="+service)
	if err != nil {
		t.Fatal(err)
	}
	var list struct{ LastRefTime int64 }
	if err := json.Unmarshal([]byte(a.Body), &list); err != nil {
		t.Fatal(err)
	}
	return list.LastRefTime
}
