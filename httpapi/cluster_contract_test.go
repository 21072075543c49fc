package httpapi_test

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rollcall-io/rollcall/httpapi"
	"github.com/rollcall-io/rollcall/internal/clustertest"
)

// ofNode are the parts of an answer that depend on the cluster that a script runs on.
var ofNode = []struct {
	pattern *regexp.Regexp
	mark    string
}{
	{regexp.MustCompile(`\{"ip":"[^"]*","port":\d+,"state":"[A-Z]+","extendInfo":\{[^}]*\},"address":"[^"]*","failAccessCnt":0\}`), `$$member`},
	{regexp.MustCompile(`\$member(,\$member)*`), `$$member`},
	{regexp.MustCompile(`\["[0-9.]+:\d+"(,"[0-9.]+:\d+")*\]`), `["$$address"]`},
	{regexp.MustCompile(`"(lastRefTime|lastUpdatedTime)":\d+`), `"$1":$$number`},
	{regexp.MustCompile(`"responsibleServer":"[^"]*"`), `"responsibleServer":"$$address"`},
	{regexp.MustCompile(`\{"ip":"[^"]*","voteFor":"[^"]*","term":\d+,(.*),"state":"(LEADER|FOLLOWER)"\}`), `{$$peer,$1}`},
	{regexp.MustCompile(`"standalone_mode":"[a-z]+"`), `"standalone_mode":"$$mode"`},
	{regexp.MustCompile(`local port:\d+`), `local port:$$port`},
}

func settled(body string) string {
	body = httpapi.Moving(body)
	for _, m := range ofNode {
		body = m.pattern.ReplaceAllString(body, m.mark)
	}
	return body
}

// play sends a step to a node and returns the answer in the form of a script.
func play(t *testing.T, client *http.Client, m *clustertest.Member, s httpapi.Step) string {
	t.Helper()
	req, err := s.Request(m.HTTP)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatalf("%s %s: %v", s.Method, s.Target, err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return settled(fmt.Sprintf("= %d %s\n%s", resp.StatusCode, resp.Header.Get("Content-Type"), body))
}

// The scripts that hold for the fake hold for a node alone, and for a follower of three:
// every write is forwarded there. What a follower reads the leader answers alike.
func TestContract_OnRealNodes(t *testing.T) {
	if testing.Short() {
		t.Skip("clusters of whole nodes")
	}
	client := &http.Client{Transport: &http.Transport{DisableCompression: true}}
	defer client.CloseIdleConnections()
	scripts := httpapi.ContractScripts(t)
	cases, compared := 0, 0
	for _, size := range []int{1, 3} {
		for _, name := range slices.Sorted(maps.Keys(scripts)) {
			t.Run(fmt.Sprintf("%d/%s", size, name), func(t *testing.T) {
				// An election in the middle is answered by 503: then the script says nothing.
				for range 3 {
					faults, reads, elected := playScript(t, client, size, scripts[name])
					cases, compared = cases+len(scripts[name]), compared+reads
					if len(faults) == 0 {
						return
					}
					if !elected {
						t.Fatal(strings.Join(faults, "\n"))
					}
					t.Logf("again, since there was an election: %s", faults[0])
				}
				t.Fatal("an election during each of three runs")
			})
		}
	}
	t.Logf("%d cases on real nodes, %d reads compared between follower and leader", cases, compared)
}

// playScript plays a script on a new cluster, at a follower where there is one, and
// returns what was answered otherwise, how many reads were compared with the leader's
// answers, and whether there was an election meanwhile.
func playScript(t *testing.T, client *http.Client, size int, script []httpapi.Step) (faults []string, compared int, elected bool) {
	c := clustertest.Start(t, size, nil)
	leader := c.Leader()
	node := leader
	if size > 1 {
		node = c.Followers()[0]
	}
	term := func() uint64 {
		_, term, _ := node.Node.Raft().Leader()
		return term
	}
	began := term()
	for i, s := range script {
		got := play(t, client, node, s)
		if want := settled(s.Want); got != want && s.Method != http.MethodHead {
			faults = append(faults, fmt.Sprintf("step %d %s %s\n got %s\nwant %s", i+1, s.Method, s.Target, got, want))
		}
		if s.Method != http.MethodGet || node == leader || strings.Contains(s.Target, "clientBeat") {
			continue
		}
		compared++
		if there := play(t, client, leader, s); there != got {
			faults = append(faults, fmt.Sprintf("step %d %s %s\nfollower %s\n  leader %s", i+1, s.Method, s.Target, got, there))
		}
	}
	return faults, compared, term() != began
}
