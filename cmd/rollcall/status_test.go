package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

const wellStatus = `{"id":"n1","clusterId":"c","version":"v1","ready":true,"state":"Leader","leader":"n1","term":3,"applied":9,
"members":[{"id":"n1","address":"a:1","peerAddress":"a:2","state":"UP","leader":true,"voter":true}],"leases":{"leading":true,"total":5,"storm":false}}`

// runStatus runs the command against a node that answers with a status and a body.
func runStatus(t *testing.T, code int, body string, args ...string) (exit int, stdout, stderr string) {
	t.Helper()
	node := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, password, found := r.BasicAuth(); found && (user != "ann" || password != "s3cret") {
			code = http.StatusForbidden
		}
		w.WriteHeader(code)
		io.WriteString(w, body)
	}))
	defer node.Close()
	var out, errs bytes.Buffer
	exit = run(context.Background(), append([]string{"status", "--addr", node.URL}, args...), &out, &errs)
	return exit, out.String(), errs.String()
}

func TestStatus_HealthyNode(t *testing.T) {
	exit, out, _ := runStatus(t, 200, wellStatus)
	if exit != 0 || !strings.Contains(out, "leases: 5") || !strings.Contains(out, "leader n1, term 3, applied index 9") {
		t.Fatalf("exit %d, %s", exit, out)
	}
	exit, out, _ = runStatus(t, 200, wellStatus, "-o", "json")
	if exit != 0 || !json.Valid([]byte(out)) {
		t.Fatalf("exit %d, %s", exit, out)
	}
}

func TestStatus_WhatIsNotWellIsNamedAndExitsWith1(t *testing.T) {
	for name, c := range map[string]struct{ from, to, says string }{
		"not ready":   {`"ready":true`, `"ready":false,"notReady":"node is 11s behind"`, "n1 is not ready: node is 11s behind"},
		"no leader":   {`"leader":"n1"`, `"leader":""`, "no leader is known"},
		"diverged":    {`"term":3`, `"diverged":true`, "wipe its data directory"},
		"member down": {`"state":"UP"`, `"state":"DOWN"`, "n1 is DOWN"},
		"no vote":     {`"voter":true`, `"voter":false`, "has no vote yet"},
	} {
		t.Run(name, func(t *testing.T) {
			exit, _, errs := runStatus(t, 200, strings.Replace(wellStatus, c.from, c.to, 1))
			if exit != 1 || !strings.Contains(errs, c.says) {
				t.Fatalf("exit %d, %s", exit, errs)
			}
		})
	}
	_, out, _ := runStatus(t, 200, strings.Replace(wellStatus, `"storm":false`, `"storm":true,"held":120`, 1))
	if !strings.Contains(out, "STORM") || !strings.Contains(out, "120 evictions") {
		t.Errorf("a storm is not shown: %s", out)
	}
}

func TestStatus_AccountsAndStrangers(t *testing.T) {
	t.Setenv("ROLLCALL_PASSWORD", "s3cret")
	if exit, _, _ := runStatus(t, 200, wellStatus, "--user", "ann"); exit != 0 {
		t.Errorf("with an account: exit %d", exit)
	}
	if exit, _, errs := runStatus(t, 200, wellStatus, "--user", "bob"); exit != 1 || !strings.Contains(errs, "--user") {
		t.Errorf("with another account: exit %d, %s", exit, errs)
	}
	if exit, _, errs := runStatus(t, 200, "<html>"); exit != 1 || !strings.Contains(errs, "is it a rollcall node?") {
		t.Errorf("a stranger: exit %d, %s", exit, errs)
	}
	if exit, _, _ := runStatus(t, 200, wellStatus, "-o", "yaml"); exit != 2 {
		t.Errorf("-o yaml: exit %d", exit)
	}
}
