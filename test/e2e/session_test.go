package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/rollcall-io/rollcall/test/e2e/nodes"
	"github.com/rollcall-io/rollcall/test/faults/figures"
)

// session is a client that registers one instance with a weight that grows and reads it
// back through any node, asking for the index of the newest answer that it has.
type session struct {
	in      nodes.Instance
	written int    // newest weight that was sent
	seen    int    // newest weight that was acknowledged or read
	index   uint64 // of the answer that told so

	sent, acked, reads int
	wrong              []string
}

func (s *session) step(ctx context.Context, n *nodes.Node) {
	s.written++
	s.sent++
	form := s.in.Registration()
	form.Set("weight", strconv.Itoa(s.written))
	limited, cancel := context.WithTimeout(ctx, 6*time.Second)
	defer cancel()
	a, err := n.Send(limited, http.MethodPost, nodes.NS+"/instance", form)
	if err == nil && a.OK() {
		s.acked++
		s.advance(n, a, s.written)
	}
}

func (s *session) advance(n *nodes.Node, a nodes.Answer, weight int) {
	index, err := strconv.ParseUint(a.Header.Get("X-Rollcall-Index"), 10, 64)
	switch {
	case err != nil:
		s.wrong = append(s.wrong, fmt.Sprintf("%s tells no index: %v", n.ID, err))
	case index < s.index:
		s.wrong = append(s.wrong, fmt.Sprintf("%s answers at index %d after %d was asked for", n.ID, index, s.index))
	case weight < s.seen:
		s.wrong = append(s.wrong, fmt.Sprintf("%s shows value %d at index %d, %d was seen at %d", n.ID, weight, index, s.seen, s.index))
	default:
		s.seen, s.index = weight, index
	}
}

func (s *session) read(ctx context.Context, n *nodes.Node) {
	if s.index == 0 {
		return
	}
	limited, cancel := context.WithTimeout(ctx, 4*time.Second)
	defer cancel()
	a, err := n.Send(limited, http.MethodGet, nodes.NS+"/instance/list",
		url.Values{"serviceName": {s.in.Service}, "minIndex": {strconv.FormatUint(s.index, 10)}})
	if err != nil || a.Status != http.StatusOK {
		return // down, or it has not got there
	}
	var list struct{ Hosts []nodes.Host }
	if err := json.Unmarshal([]byte(a.Body), &list); err != nil || len(list.Hosts) != 1 {
		s.wrong = append(s.wrong, fmt.Sprintf("%s lists %s: %v", n.ID, a.Body, err))
		return
	}
	s.reads++
	s.advance(n, a, int(list.Hosts[0].Weight))
}

// TestAnyNodeKilled_NoAcknowledgedWriteIsLostAndSessionsNeverGoBack kills leaders and
// followers in the middle of what they forward. Every session goes from node to node and
// never sees less than it has seen.
func TestAnyNodeKilled_NoAcknowledgedWriteIsLostAndSessionsNeverGoBack(t *testing.T) {
	row := figures.Track(t, "any node killed under load")
	c := nodes.Start(t, binary, 3)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	sessions := make([]*session, 8)
	var clients sync.WaitGroup
	for i := range sessions {
		s := &session{in: nodes.Instance{Service: fmt.Sprintf("session-%d", i), IP: "10.3.0.1", Port: 80}.Lasting()}
		sessions[i] = s
		clients.Go(func() {
			for ctx.Err() == nil && s.written < 9900 {
				s.step(ctx, c.Nodes()[rand.IntN(3)])
				s.read(ctx, c.Nodes()[rand.IntN(3)])
				pass(3 * time.Millisecond)
			}
		})
	}
	writers := c.Write(8, 5*time.Millisecond, c.Nodes)
	for range either(5, 20) {
		pass(time.Second)
		victim := c.Nodes()[rand.IntN(3)]
		victim.Kill()
		pass(rand.N(time.Second))
		victim.Start()
		c.WaitReady(victim)
		row.Rounds++
	}
	cancel()
	clients.Wait()
	row.Outage(writers.LongestGap())
	acked := writers.Stop()
	reads := 0
	for _, s := range sessions {
		reads += s.reads
		row.Wrote(s.sent, s.acked, 0)
		for _, wrong := range s.wrong {
			t.Errorf("%s: %s", s.in.Service, wrong)
		}
		s.settled(t, c)
	}
	row.Wrote(writers.Sent(), checkAcked(t, c, acked), 0)
	row.Note = fmt.Sprintf("%d reads of sessions", reads)
	t.Logf("%d rounds, %s, %d writes acknowledged", row.Rounds, row.Note, row.Acknowledged)
}

// settled waits until all nodes show what the session saw last, or what it sent after that.
func (s *session) settled(t *testing.T, c *nodes.Cluster) {
	t.Helper()
	for _, n := range c.Nodes() {
		c.Until(fmt.Sprintf("%s on %s at %d or later", s.in.Service, n.ID, s.seen), func() bool {
			hosts, err := n.List(s.in.Service)
			return err == nil && len(hosts) == 1 && int(hosts[0].Weight) >= s.seen
		})
	}
}
