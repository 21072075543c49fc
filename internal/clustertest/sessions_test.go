package clustertest

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/rollcall-io/rollcall/test/faults/figures"
)

// longForm asks for the rounds that take minutes.
func longForm() bool { return os.Getenv("ROLLCALL_E2E") == "long" }

// session writes a value that grows into one instance and reads it back, asking each
// time for the index of the newest answer that it has. Its own writes are the only ones,
// so that the value may never go back.
type session struct {
	service       string
	written, seen int
	index         uint64

	sent, acked, reads int
	wrong              []string
}

func (s *session) write(m *Member) {
	s.written++
	s.sent++
	a, err := m.Register(s.service, "10.0.0.1", 80, long, "weight="+strconv.Itoa(s.written))
	if err == nil && a.Status == http.StatusOK {
		s.acked++
		s.advance(m, a, s.written)
	}
}

// read asks for minIndex; what else is not answered 200 tells nothing.
func (s *session) read(m *Member) {
	if s.index == 0 {
		return
	}
	a, err := m.Do(http.MethodGet, "/instance/list", fmt.Sprintf("serviceName=%s&minIndex=%d", s.service, s.index))
	if err != nil || a.Status != http.StatusOK {
		return
	}
	var list struct{ Hosts []struct{ Weight float64 } }
	if err := json.Unmarshal([]byte(a.Body), &list); err != nil || len(list.Hosts) != 1 {
		s.wrong = append(s.wrong, fmt.Sprintf("%s lists %s: %v", m.ID, a.Body, err))
		return
	}
	s.reads++
	s.advance(m, a, int(list.Hosts[0].Weight))
}

func (s *session) advance(m *Member, a Answer, value int) {
	index, err := strconv.ParseUint(a.Header.Get("X-Rollcall-Index"), 10, 64)
	if err != nil || index < s.index || value < s.seen || value > s.written {
		s.wrong = append(s.wrong, fmt.Sprintf("%s shows value %d at index %d (%v), %d was seen at %d and %d written",
			m.ID, value, index, err, s.seen, s.index, s.written))
		return
	}
	s.seen, s.index = value, index
}

// TestCluster_LocalReadsWithMinIndexNeverGoBack: sessions wander between nodes while links
// fail in each way. A node that has not got as far as asked for must say so.
func TestCluster_LocalReadsWithMinIndexNeverGoBack(t *testing.T) {
	row := figures.Track(t, "local reads under faulty links")
	c := Start(t, 3, nil)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	sessions := make([]*session, 9)
	var clients sync.WaitGroup
	for i := range sessions {
		s := &session{service: fmt.Sprintf("session-%d", i)}
		sessions[i] = s
		clients.Go(func() {
			tick := time.NewTicker(4 * time.Millisecond)
			defer tick.Stop()
			for ctx.Err() == nil && s.written < 9900 {
				s.write(c.nodes[rand.IntN(3)])
				for range 2 {
					s.read(c.nodes[rand.IntN(3)])
				}
				<-tick.C
			}
		})
	}
	rounds := 6
	if longForm() {
		rounds = 100
	}
	for round := range rounds {
		m := c.nodes[rand.IntN(3)]
		switch round % 3 {
		case 0:
			c.Isolate(m, Fault{Drop: true})
		case 1:
			c.Isolate(m, Fault{Delay: 20 * time.Millisecond, Jitter: 60 * time.Millisecond})
		default:
			c.Link(c.nodes[rand.IntN(3)], m, Fault{Drop: true})
		}
		<-time.After(1300 * time.Millisecond)
		c.Heal()
		<-time.After(700 * time.Millisecond)
		row.Rounds++
	}
	cancel()
	clients.Wait()
	reads := 0
	for _, s := range sessions {
		reads += s.reads
		row.Wrote(s.sent, s.acked, 0)
		for _, wrong := range s.wrong {
			t.Errorf("%s: %s", s.service, wrong)
		}
		for _, m := range c.Members() {
			c.Until(fmt.Sprintf("%s at %d on %s", s.service, s.seen, m.ID), func() bool {
				before := s.seen
				s.read(m)
				return s.seen >= before && len(s.wrong) == 0
			})
		}
	}
	row.Note = fmt.Sprintf("%d reads", reads)
	t.Logf("%d reads, %d writes acknowledged of %d", reads, row.Acknowledged, row.Operations)
	if reads < 5*rounds { // a machine that does much else manages few; none would prove nothing
		t.Errorf("only %d reads", reads)
	}
}
