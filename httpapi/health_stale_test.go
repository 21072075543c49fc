package httpapi

import (
	"context"
	"net/http"
	"testing"

	"github.com/rollcall-io/rollcall/registry"
)

// A follower that has not applied yet what another node has acknowledged catches up
// before it says that a service is not there.
func TestSetHealth_CatchesUpBeforeItRefuses(t *testing.T) {
	t.Parallel()
	for _, path := range []string{nsPrefix + "/health", v2NsPrefix + "/health"} {
		s, f := newTestServer(t, nil)
		key := registry.NewServiceKey("", "", "svc")
		f.readIndex = func(ctx context.Context) (uint64, error) { // what the leader has arrives with it
			f.readIndex = nil
			cluster := registry.NewCluster("DEFAULT")
			cluster.Checker.Type = registry.CheckNone
			for _, c := range []registry.Command{registry.ServiceCreate{Key: key}, registry.ClusterUpdate{Key: key, Cluster: cluster}} {
				if _, err := f.Propose(ctx, c); err != nil {
					return 0, err
				}
			}
			return f.Applied(), nil
		}
		if w := do(s, http.MethodPut, path+"?serviceName=svc&ip=10.0.0.1&port=80&healthy=true"); w.Code != http.StatusOK {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
}
