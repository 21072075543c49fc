package httpapi

import (
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var updateContract = flag.Bool("update", false, "write what the server answers into testdata/contract")

// TestContract plays the scripts of testdata/contract, each on a server of its own. A
// script is a list of steps between blank lines:
//
//	POST /path?query           the request
//	> Header: value            a header of it, any number
//	< body                     its body
//	= 200 application/json     status and content type of the answer
//	text                       the exact body; $time, $hex and $number stand for what moves
//
// Lines that start with # are comments; `# members` marks a step whose answer depends on the
// addresses of the cluster's members and so holds for the fake alone.
func TestContract(t *testing.T) {
	t.Parallel()
	for _, file := range contractFiles(t) {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			t.Parallel()
			s, _ := newTestServer(t, nil)
			var out []string
			for i, step := range readContract(t, file) {
				got := step.run(s)
				out = append(out, strings.Join(append(step.lines, got...), "\n"))
				if !*updateContract {
					step.compare(t, i+1, got)
				}
			}
			if *updateContract {
				if err := os.WriteFile(file, []byte(strings.Join(out, "\n\n")+"\n"), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

func contractFiles(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("testdata/contract/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	return files
}

func readContract(t *testing.T, file string) (steps []contractStep) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range strings.Split(strings.TrimSpace(string(text)), "\n\n") {
		steps = append(steps, parseStep(t, block))
	}
	return steps
}

// Every route has a case, so that one that is added without is noticed.
func TestContract_EveryRouteHasACase(t *testing.T) {
	t.Parallel()
	cases := make(map[string]int)
	total := 0
	for _, file := range contractFiles(t) {
		for _, step := range readContract(t, file) {
			path, _, _ := strings.Cut(step.target, "?")
			cases[step.method+" "+strings.TrimSuffix(path, "/")]++
			total++
		}
	}
	missing := 0
	for _, rt := range allRoutes() {
		prefix, _, parameter := strings.Cut(rt.path, ":")
		n := cases[rt.method+" "+rt.path]
		for request := range cases {
			if parameter && strings.HasPrefix(request, rt.method+" "+prefix) {
				n++
			}
		}
		if n == 0 && rt.path != "/metrics" && rt.path != "/api/v1/watch" && rt.path != "/api/v1/status" { // no texts of a script
			t.Errorf("no case of %s %s", rt.method, rt.path)
			missing++
		}
	}
	t.Logf("%d endpoints, %d cases, %d endpoints without a case", len(allRoutes()), total, missing)
}

type contractStep struct {
	lines   []string // request and comments as they stand in the script
	method  string
	target  string
	headers [][2]string
	body    string
	want    []string
	fake    bool // holds for the fake alone
}

func parseStep(t *testing.T, block string) contractStep {
	t.Helper()
	var s contractStep
	lines := strings.Split(block, "\n")
	for i, line := range lines {
		switch {
		case line == "# members":
			s.fake = true
		case strings.HasPrefix(line, "#"):
		case strings.HasPrefix(line, "> "):
			name, value, _ := strings.Cut(line[2:], ": ")
			s.headers = append(s.headers, [2]string{name, value})
		case strings.HasPrefix(line, "< "):
			s.body = line[2:]
		case strings.HasPrefix(line, "= "):
			s.want = lines[i:]
			return s
		default:
			s.method, s.target, _ = strings.Cut(line, " ")
		}
		s.lines = append(s.lines, line)
	}
	if s.method == "" {
		t.Fatalf("no request in %q", block)
	}
	return s
}

// run returns the answer in the form of a script.
func (c contractStep) run(s *Server) []string {
	path, query, _ := strings.Cut(c.target, "?")
	req := httptest.NewRequest(c.method, path, nil)
	req.URL.RawQuery = query // taken as it is, like net/http does from the wire
	if c.body != "" {
		req = httptest.NewRequest(c.method, path, strings.NewReader(c.body))
		req.URL.RawQuery = query
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for _, h := range c.headers {
		req.Header.Set(h[0], h[1])
	}
	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, req)
	head := fmt.Sprintf("= %d %s", w.Code, w.Header().Get("Content-Type"))
	body := strings.ReplaceAll(w.Body.String(), "\r\n", `\r\n`)
	for _, m := range moving {
		body = m.pattern.ReplaceAllString(body, m.mark)
	}
	return []string{head, body}
}

// moving are the parts of answers that no script can know.
var moving = []struct {
	pattern *regexp.Regexp
	mark    string
}{
	{regexp.MustCompile(`"timestamp":"[-0-9T:.+]{29}"`), `"timestamp":"$$time"`},
	{regexp.MustCompile(`<div id='created'>[^<]*<`), `<div id='created'>$$time<`},
	{regexp.MustCompile(`"checksum":"[0-9a-f]{32}"`), `"checksum":"$$hex"`},
	{regexp.MustCompile(`"load":-?[0-9.]+,"mem":-?[0-9.]+`), `"load":$$number,"mem":$$number`},
}

func (c contractStep) compare(t *testing.T, number int, got []string) {
	t.Helper()
	if got, want := strings.Join(got, "\n"), strings.Join(c.want, "\n"); got != want {
		t.Errorf("step %d %s %s\n got %s\nwant %s", number, c.method, c.target, got, want)
	}
}

// TestContract_Headers covers what every answer of the façade carries.
func TestContract_Headers(t *testing.T) {
	t.Parallel()
	s, f := newTestServer(t, nil)
	get := func(target string) http.Header {
		w := httptest.NewRecorder()
		s.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, target, nil))
		return w.Header()
	}
	for _, target := range []string{"/nacos/v1/ns/instance/list?serviceName=a", "/nacos/v1/ns/instance/list", "/nacos/v1/ns/zzz", "/readyz"} {
		h := get(target)
		for name, want := range map[string]string{"X-Rollcall-Index": "7", "X-Rollcall-Node": "n1", "X-Rollcall-Leader": "n1",
			"X-Rollcall-Lag-Ms": "0", "X-Content-Type-Options": "nosniff"} {
			if got := h.Get(name); got != want {
				t.Errorf("%s: %s = %q, want %q", target, name, got, want)
			}
		}
	}
	f.leader = ""
	if h := get("/nacos/v1/ns/instance/list?serviceName=a"); h["X-Rollcall-Leader"] != nil {
		t.Errorf("a leader is named that nobody knows: %v", h)
	}
}
