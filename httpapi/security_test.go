package httpapi

import (
	"net/http"
	"strings"
	"testing"
)

// Endpoints of Nacos that took SQL, Raft commands or server lists without a login are not
// there; what shows or changes the node is closed (alibaba/nacos #4463, #8866, #10613,
// CVE-2021-29442).
func TestLeftoverAdminEndpoints(t *testing.T) {
	t.Parallel()
	s, f := newGuardedServer(t, nil)
	proposed := len(f.proposed)
	for _, tc := range []struct {
		method, target string
		status         int
	}{
		{"GET", "/nacos/v1/cs/ops/derby?sql=select%201", 404}, {"POST", "/nacos/v1/cs/ops/data/removal", 404},
		{"POST", corePrefix + "/ops/raft", 404}, {"GET", corePrefix + "/ops/idInfo", 404}, {"PUT", corePrefix + "/ops/log?logName=root&logLevel=off", 403},
		{"POST", nsPrefix + "/raft/vote", 501}, {"GET", nsPrefix + "/raft/state", 501}, {"DELETE", nsPrefix + "/raft/datum", 501},
		{"PUT", nsPrefix + "/distro/datum", 501}, {"GET", nsPrefix + "/distro/datums", 501}, {"PUT", nsPrefix + "/distro/checksum", 501},
		{"POST", nsPrefix + "/service/status", 501},
		{"GET", corePrefix + "/cluster/nodes", 403}, {"GET", corePrefix + "/cluster/self", 403}, {"POST", corePrefix + "/cluster/report", 404},
		{"POST", corePrefix + "/cluster/server/leave", 404}, {"POST", corePrefix + "/cluster/switch/lookup?type=file", 404},
		{"PUT", nsPrefix + "/operator/switches?entry=check&value=false", 403}, {"PUT", nsPrefix + "/operator/log?logName=root&logLevel=off", 403},
	} {
		if w := do(s, tc.method, tc.target); w.Code != tc.status {
			t.Errorf("%s %s: %d %s, want %d", tc.method, tc.target, w.Code, w.Body, tc.status)
		}
	}
	if len(f.proposed) != proposed {
		t.Errorf("proposed %v", f.proposed[proposed:])
	}
}

// Metrics and state are behind an account, the profiler and the variables of the process
// are not on this port, and the figures name no service, account or secret (alibaba/nacos
// #7148, #15374, #15683).
func TestOpenMetricsProfilerAndState(t *testing.T) {
	t.Parallel()
	s, _ := newGuardedServer(t, nil)
	admin := tokenOf(t, s, "admin")
	for target, want := range map[string]int{
		"/metrics": 403, "/debug/pprof/": 404, "/debug/vars": 404, "/nacos/actuator/env": 404, "/nacos/actuator/prometheus": 404,
		"/nacos/actuator/health": 200, consolePrefix + "/server/state": 403,
	} {
		if w := do(s, http.MethodGet, target); w.Code != want {
			t.Errorf("%s: %d, want %d", target, w.Code, want)
		}
	}
	if w := ask(s, http.MethodPost, nsPrefix+"/instance?serviceName=telltale&ip=10.0.0.1&port=80", admin); w.Code != http.StatusOK {
		t.Fatal(w.Body)
	}
	text := ask(s, http.MethodGet, "/metrics", admin).Body.String()
	for _, secret := range []string{"telltale", "10.0.0.1", "alice", admin, s.opts.Reader.Accounts().Key} {
		if strings.Contains(text, secret) {
			t.Errorf("the metrics show %q", secret)
		}
	}
	if w := ask(s, http.MethodGet, consolePrefix+"/server/state", admin); w.Body.String() != `{"version":"1.4.7","standalone_mode":"cluster","function_mode":null}` {
		t.Errorf("state: %s", w.Body)
	}
}
