package field

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/rollcall-io/rollcall/internal/app"
	"github.com/rollcall-io/rollcall/internal/clustertest"
)

// furnish fills a cluster with one of each kind, and enough for several snapshots.
func furnish(t *testing.T, m *member) {
	t.Helper()
	must(t, m, http.MethodPost, "/instance", "serviceName=svc&ip=10.1.0.1&port=80&"+strings.Replace(lasting, "metadata=%7B", "metadata=%7B%22%E5%8C%BA%22%3A%22%E4%B8%8A%E6%B5%B7%22%2C%22e%22%3A%22%F0%9F%9A%80%22%2C", 1))
	must(t, m, http.MethodPost, "/service", "serviceName=made&groupName=G1&namespaceId=space&protectThreshold=0.25&metadata=k%3Dv")
	must(t, m, http.MethodPost, "/instance", "serviceName=made&groupName=G1&namespaceId=space&clusterName=c1&ip=10.1.0.2&port=80&enabled=false&"+lasting)
	must(t, m, http.MethodPost, "/instance", "serviceName=lasting&ip=127.0.0.1&port=9&ephemeral=false&weight=7")
	must(t, m, http.MethodPut, "/operator/switches", "entry=pushEnabled&value=false")
	must(t, m, http.MethodPut, "/cluster", "serviceName=lasting&clusterName=DEFAULT&checkPort=8099&useInstancePort4Check=true&healthChecker=%7B%22type%22%3A%22NONE%22%7D&metadata=a%3Db")
	must(t, m, http.MethodPost, "/instance", "serviceName=svc&clusterName=c2&ip=10.1.0.1&port=81&"+lasting)
	for i := range 300 {
		m.MustRegister("many", "10.1.0.1", i, lasting)
	}
}

// asks are the questions whose answers must survive.
var asks = []string{"/instance/list?serviceName=svc", "/instance/list?serviceName=many", "/instance?serviceName=svc&ip=10.1.0.1&port=80",
	"/service?serviceName=made&groupName=G1&namespaceId=space", "/service/list?namespaceId=space&groupName=G1&pageNo=1&pageSize=9",
	"/instance?serviceName=made&groupName=G1&namespaceId=space&cluster=c1&ip=10.1.0.2&port=80", "/operator/switches",
	"/instance/list?serviceName=svc&clusters=c2", "/catalog/service?serviceName=lasting", "/service/names?namespaceId=space", "/service/names",
	"/catalog/services?pageNo=1&pageSize=20&withInstances=true", "/service/list?pageNo=1&pageSize=20", "/instance/statuses?key=DEFAULT_GROUP%40%40svc",
}

func ask(m *member, what string) string {
	path, params, _ := strings.Cut(what, "?")
	a, err := m.Do(http.MethodGet, path, params)
	return fmt.Sprint(a.Status, a.Body, err)
}

// TestSnapshotAndRestart_KeepEveryAnswer: metadata in other scripts, services, thresholds,
// disabled and persistent instances came back wrong, or not at all, from a snapshot
// (alibaba/nacos #2962, #6684, #11178; Netflix/eureka #856).
func TestSnapshotAndRestart_KeepEveryAnswer(t *testing.T) {
	c := clustertest.Start(t, 3, func(o *app.Options) {
		o.SnapshotEntries, o.SnapshotInterval, o.TrailingLogs = 50, 100*time.Millisecond, 10
	})
	m := c.Leader()
	furnish(t, m)
	before := map[string]string{}
	for _, what := range asks {
		before[what] = ask(m, what)
	}
	if !strings.Contains(before[asks[0]], `"区":"上海"`) || !strings.Contains(before[asks[0]], `"e":"🚀"`) {
		t.Errorf("metadata before the restart: %s", before[asks[0]])
	}
	for _, m := range c.Members() {
		c.Until("a snapshot on "+m.ID, func() bool { return m.Node.Raft().Status().SnapshotIndex > 0 })
	}
	for _, m := range c.Members() {
		m.Stop()
	}
	for _, m := range c.Members() {
		m.Start()
	}
	c.WaitReady()
	for _, m := range c.Members() {
		for _, what := range asks {
			if got := ask(m, what); got != before[what] {
				t.Errorf("%s on %s after the restart: %s\nbefore: %s", what, m.ID, got, before[what])
			}
		}
	}
}

// TestWholeClusterDown_TheLivingStayAndTheDeadLeave: after an outage of all nodes either
// everybody was evicted at the start, or those whose client had died meanwhile stayed for
// ever (polarismesh/polaris #104; hashicorp/consul #3569, #6231).
func TestWholeClusterDown_TheLivingStayAndTheDeadLeave(t *testing.T) {
	c := startCluster(t)
	fill(t, c, "svc", 1000, 1060, short)
	for _, m := range c.Members() {
		m.Stop()
	}
	<-time.After(6500 * time.Millisecond) // longer than any of them may be silent
	for _, m := range c.Members() {
		m.Start()
	}
	stop := beating(c, 40, func(m *member, i int) bool {
		if i%2 == 0 {
			return fullBeat(m, "svc", "10.1.0.1", 1000+i, "")
		}
		a, err := m.Beat("svc", "10.1.0.1", 1000+i)
		return err == nil && strings.Contains(a.Body, `"code":10200`)
	})
	defer stop()
	c.WaitReady()
	start := time.Now()
	for _, m := range c.Members() {
		c.Until("only the living on "+m.ID, func() bool {
			hosts, err := m.List("svc")
			living := 0
			for _, h := range hosts {
				if h.Port < 1040 && h.Healthy {
					living++
				}
			}
			if err == nil && living != 40 {
				t.Fatalf("%s shows %d of 40 that beat healthy", m.ID, living)
			}
			return err == nil && len(hosts) == 40
		})
	}
	t.Logf("the dead left after %s: 6 s of their own, and the start's grace", time.Since(start))
}
