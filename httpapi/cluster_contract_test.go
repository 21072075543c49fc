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
				c := clustertest.Start(t, size, nil)
				node, leader := c.Leader(), c.Leader()
				if size > 1 {
					node = c.Followers()[0]
				}
				for i, s := range scripts[name] {
					got := play(t, client, node, s)
					if want := settled(s.Want); got != want && !strings.HasPrefix(s.Method, "HEAD") {
						t.Errorf("step %d %s %s\n got %s\nwant %s", i+1, s.Method, s.Target, got, want)
					}
					cases++
					if s.Method != http.MethodGet || node == leader || strings.Contains(s.Target, "clientBeat") {
						continue
					}
					compared++
					if there := play(t, client, leader, s); there != got {
						t.Errorf("step %d %s %s\nfollower %s\n  leader %s", i+1, s.Method, s.Target, got, there)
					}
				}
			})
		}
	}
	t.Logf("%d cases on real nodes, %d reads compared between follower and leader", cases, compared)
}
