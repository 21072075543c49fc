package httpapi

import (
	"encoding/json"
	"testing"

	"github.com/rollcall-io/rollcall/registry"
)

func TestStatus_TellsEverythingInEveryState(t *testing.T) {
	want := registry.NodeStatus{
		ID: "n1", ClusterID: "c", Version: "v1", NotReady: "node is not ready", State: "Follower", Leader: "n2", Term: 7,
		Applied: 9, Snapshot: 5, LagMs: 12, FreeDisk: 1 << 30, Diverged: true, Services: 3, Instances: 4,
		Members: []registry.Member{{ID: "n2", Address: "b:1", PeerAddress: "b:2", State: registry.MemberUp, Leader: true, Voter: true}},
		Leases:  registry.LeaseStatus{Leading: true, Total: 4, Unhealthy: 1, Silent: 2, Storm: true, Held: 2, CompensatedMs: 10, Kept: 1},
	}
	s, _ := newTestServer(t, func(o *Options) { o.Status = func() registry.NodeStatus { return want } })
	code, body := askAs(s, "/api/v1/status", "curl")
	var got statusAnswer
	if err := json.Unmarshal([]byte(body), &got); err != nil || code != 200 {
		t.Fatalf("%d %s: %v", code, body, err)
	}
	if got.Ready || got.NotReady != want.NotReady || got.Term != 7 || got.Members[0].PeerAddress != "b:2" || got.Leases != leaseAnswer(want.Leases) {
		t.Errorf("%+v", got)
	}
}
