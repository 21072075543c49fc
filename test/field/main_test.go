package field

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/rollcall-io/rollcall/internal/clustertest"
)

const prefix = "/nacos/v1/ns"

type (
	cluster = clustertest.Cluster
	member  = clustertest.Member
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func startCluster(t *testing.T) *cluster {
	t.Helper()
	return clustertest.Start(t, 3, nil)
}

// reply is an answer off the wire.
type reply struct {
	status int
	body   string
}

// raw sends a request byte for byte as it stands, on a connection of its own.
func raw(t *testing.T, n *member, s step) reply {
	t.Helper()
	address := strings.TrimPrefix(n.HTTP, "http://")
	conn, err := net.DialTimeout("tcp", address, 5*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	text := wireText(s, address)
	var sending sync.WaitGroup
	defer sending.Wait()
	defer conn.Close()
	sending.Go(func() { _, _ = io.WriteString(conn, text) }) // a refusal may come before all is sent
	resp, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: s.method})
	if err != nil {
		return reply{body: "no answer: " + err.Error()}
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil && resp.StatusCode < 400 { // after a refusal the node need not read the rest
		return reply{body: "half an answer: " + err.Error()}
	}
	return reply{resp.StatusCode, string(body)}
}

// insist is raw, again and again for a while when the answer is a 503: on a busy machine
// an election can come at any time. The request must bear being made twice.
func insist(t *testing.T, n *member, s step) reply {
	t.Helper()
	a := raw(t, n, s)
	for end := time.Now().Add(30 * time.Second); a.status == http.StatusServiceUnavailable && time.Now().Before(end); {
		a = raw(t, n, s)
	}
	return a
}

// throughBoth is what a request goes through that must get the same everywhere.
func throughBoth(c *cluster) map[string]*member {
	return map[string]*member{"leader": c.Leader(), "follower": c.Followers()[0]}
}

// wireText is the request as it goes over the wire.
func wireText(s step, address string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n", s.method, s.target, address)
	typed := false
	for _, h := range s.headers {
		typed = typed || strings.HasPrefix(h, "Content-Type:")
		if h != "Content-Type: none" {
			b.WriteString(h + "\r\n")
		}
	}
	if s.body != "" && !typed {
		b.WriteString("Content-Type: application/x-www-form-urlencoded\r\n")
	}
	if s.chunked {
		b.WriteString("Transfer-Encoding: chunked\r\n\r\n")
		for _, part := range []string{s.body[:len(s.body)/2], s.body[len(s.body)/2:]} {
			if part != "" {
				fmt.Fprintf(&b, "%x\r\n%s\r\n", len(part), part)
			}
		}
		b.WriteString("0\r\n\r\n")
	} else {
		fmt.Fprintf(&b, "Content-Length: %d\r\n\r\n%s", len(s.body), s.body)
	}
	return b.String()
}
