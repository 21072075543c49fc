package field

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// step is one request of a script and what its answer must be.
type step struct {
	line     int
	method   string
	target   string
	headers  []string
	body     string
	chunked  bool
	everyone bool // LIST: asked of all nodes until it fits
	status   string
	text     string // exact, when exact is set
	exact    bool
	holds    []string
	lacks    []string
	hosts    []string
	noHosts  bool
}

// parseScript reads a script: steps between blank lines, each of
//
//	POST /instance?serviceName={svc}     a request; /nacos/v1/ns is put before most paths
//	LIST serviceName={svc}               or: the list of a service, asked of every node until it fits
//	> Header: value                      a header
//	< a=b                                its body, called a form unless a header says otherwise
//	= 200 ok                             its status (4xx is a class) and, if given, its whole text
//	~ text                               a part of its text
//	! text                               what must not be in it
//	* 10.1.0.1:8080 weight=2 metadata={} a host of a list; all of them are named, in order
//	* none                               a list without hosts
//
// {svc} is a name of the script's own, {n*c} is c repeated n times. Targets and bodies are
// sent byte for byte. Lines with # are comments.
func parseScript(t *testing.T, file, service string) []step {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var steps []step
	fresh := true
	for i, line := range strings.Split(string(text), "\n") {
		line = expand(strings.ReplaceAll(line, "{svc}", service))
		mark, rest, _ := strings.Cut(line, " ")
		switch {
		case line == "":
			fresh = true
			continue
		case mark == "#":
			continue
		case fresh:
			steps = append(steps, newStep(i+1, mark, rest))
			fresh = false
			continue
		}
		if !steps[len(steps)-1].add(mark, rest) {
			t.Fatalf("%s:%d: what is %q?", file, i+1, line)
		}
	}
	return steps
}

var repeat = regexp.MustCompile(`\{(\d+)\*([^}]+)\}`)

func expand(line string) string {
	return repeat.ReplaceAllStringFunc(line, func(m string) string {
		part := repeat.FindStringSubmatch(m)
		n, _ := strconv.Atoi(part[1]) // digits only
		return strings.Repeat(part[2], n)
	})
}

func newStep(line int, method, target string) step {
	if method == "LIST" {
		return step{line: line, method: "GET", target: prefix + "/instance/list?" + target, everyone: true, status: "200"}
	}
	if !strings.HasPrefix(target, "/nacos") {
		target = prefix + target
	}
	return step{line: line, method: method, target: target, status: "200"}
}

// add takes in a further line of the step; false when it is none.
func (s *step) add(mark, rest string) bool {
	switch mark {
	case ">":
		s.headers = append(s.headers, rest)
	case "<":
		s.body = rest
	case "=":
		s.status, s.text, s.exact = strings.Cut(rest, " ")
	case "~":
		s.holds = append(s.holds, rest)
	case "!":
		s.lacks = append(s.lacks, rest)
	case "*":
		if s.noHosts = rest == "none"; !s.noHosts {
			s.hosts = append(s.hosts, rest)
		}
	default:
		return false
	}
	return true
}

// judge says what of an answer is not as it must be, or "".
func (s step) judge(a reply) string {
	switch {
	case s.status != strconv.Itoa(a.status) && s.status != strconv.Itoa(a.status/100)+"xx":
		return "status, want " + s.status
	case s.exact && s.text != a.body:
		return fmt.Sprintf("text, want %q", s.text)
	}
	for _, part := range s.holds {
		if !strings.Contains(a.body, part) {
			return fmt.Sprintf("no %q", part)
		}
	}
	for _, part := range s.lacks {
		if strings.Contains(a.body, part) {
			return fmt.Sprintf("%q, which must not be there", part)
		}
	}
	if s.hosts == nil && !s.noHosts {
		return ""
	}
	return s.judgeHosts(a.body)
}

func (s step) judgeHosts(body string) string {
	var list struct{ Hosts []map[string]any }
	decoder := json.NewDecoder(bytes.NewReader([]byte(body)))
	decoder.UseNumber()
	if err := decoder.Decode(&list); err != nil || list.Hosts == nil {
		return "a list without hosts: []"
	}
	var got []string
	for _, h := range list.Hosts {
		got = append(got, fmt.Sprint(h["ip"], ":", h["port"]))
	}
	for i, want := range s.hosts {
		key, fields, _ := strings.Cut(want, " ")
		if i >= len(got) || got[i] != key {
			return fmt.Sprintf("hosts %v, want %v", got, s.hosts)
		}
		if bad := judgeHost(list.Hosts[i], fields); bad != "" {
			return key + ": " + bad
		}
	}
	if len(got) != len(s.hosts) {
		return fmt.Sprintf("hosts %v, want %v", got, s.hosts)
	}
	return ""
}

// judgeHost compares fields `a=b c=d metadata={...}`, the metadata last.
func judgeHost(host map[string]any, fields string) string {
	fields, metadata, found := strings.Cut(fields, "metadata=")
	if found {
		want := map[string]any{}
		if err := json.Unmarshal([]byte(metadata), &want); err != nil {
			return "script: " + err.Error()
		}
		if got, ok := host["metadata"].(map[string]any); !ok || !maps.Equal(got, want) {
			return fmt.Sprintf("metadata %v, want %s", host["metadata"], metadata)
		}
	}
	for field := range strings.FieldsSeq(fields) {
		name, want, _ := strings.Cut(field, "=")
		if got := fmt.Sprint(host[name]); got != want {
			return fmt.Sprintf("%s %s, want %s", name, got, want)
		}
	}
	return ""
}

// TestScripts plays every script of testdata through the leader and through a follower.
func TestScripts(t *testing.T) {
	c := startCluster(t)
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	slices.Sort(files)
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".txt")
		t.Run(name, func(t *testing.T) {
			for through, node := range throughBoth(c) {
				t.Run(through, func(t *testing.T) {
					for _, s := range parseScript(t, file, name[:min(len(name), 40)]+"."+through) {
						play(t, c, node, file, s)
					}
				})
			}
		})
	}
}

func play(t *testing.T, c *cluster, node *member, file string, s step) {
	t.Helper()
	nodes := []*member{node}
	if s.everyone {
		nodes = c.Members()
	}
	for _, n := range nodes {
		a := insist(t, n, s)
		for tries := 0; s.everyone && s.judge(a) != "" && tries < 300; tries++ {
			a = raw(t, n, s)
		}
		if bad := s.judge(a); bad != "" {
			t.Errorf("%s:%d: %.120s %.200s on %s: %s in %d %.400q", file, s.line, s.method, s.target, n.ID, bad, a.status, a.body)
		}
	}
}
