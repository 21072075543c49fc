package httpapi

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"
)

// Step is a step of a contract script for tests outside the package, which play the
// scripts against whole nodes.
type Step struct {
	Method, Target, Body string
	Headers              [][2]string
	// Want is the answer as the script has it: `= status type`, then the body.
	Want string
}

// ContractScripts are all scripts by name, without the steps that hold for the fake alone.
func ContractScripts(t *testing.T) map[string][]Step {
	t.Helper()
	scripts := make(map[string][]Step)
	for _, file := range contractFiles(t) {
		name := strings.TrimSuffix(filepath.Base(file), ".txt")
		for _, s := range readContract(t, file) {
			if !s.fake {
				scripts[name] = append(scripts[name], Step{s.method, s.target, s.body, s.headers, strings.Join(s.want, "\n")})
			}
		}
	}
	return scripts
}

// Routes are the methods and paths of all routes.
func Routes() (routes [][2]string) {
	for _, rt := range allRoutes() {
		routes = append(routes, [2]string{rt.method, rt.target()})
	}
	return routes
}

// Moving replaces what no script can know in a body.
func Moving(body string) string {
	body = strings.ReplaceAll(body, "\r\n", `\r\n`)
	for _, m := range moving {
		body = m.pattern.ReplaceAllString(body, m.mark)
	}
	return body
}

// Request is the step as a request to a server.
func (s Step) Request(base string) (*http.Request, error) {
	path, query, _ := strings.Cut(s.Target, "?")
	req, err := http.NewRequest(s.Method, base+path, strings.NewReader(s.Body))
	if err != nil {
		return nil, err
	}
	req.URL.RawQuery = query // as it is
	if s.Body != "" {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for _, h := range s.Headers {
		req.Header.Set(h[0], h[1])
	}
	return req, nil
}
