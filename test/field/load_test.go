package field

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rollcall-io/rollcall/internal/app"
	"github.com/rollcall-io/rollcall/internal/clustertest"
)

// crowd is a number of clients that go on until they are told to end.
type crowd struct {
	c    *cluster
	wg   sync.WaitGroup
	done chan struct{}
}

// join adds n clients; each calls f again and again, with the next node, its own number
// and how many calls it has made.
func (cr *crowd) join(n int, f func(m *member, k, i int)) {
	for k := range n {
		cr.wg.Go(func() {
			for i := 0; ; i++ {
				f(cr.c.Members()[(k+i)%3], k, i)
				select {
				case <-cr.done:
					return
				case <-time.After(time.Millisecond):
				}
			}
		})
	}
}

func (cr *crowd) end() { close(cr.done); cr.wg.Wait() }

// disturb registers, deregisters and lists as fast as two clients of each can.
func (cr *crowd) disturb() {
	cr.join(2, func(m *member, k, i int) {
		if _, err := m.Register(fmt.Sprintf("other-%d", k), "10.1.0.2", i%60000, lasting); err == nil {
			_, _ = m.Deregister(fmt.Sprintf("other-%d", k), "10.1.0.2", i%60000)
		}
	})
	cr.join(2, func(m *member, _, _ int) { _, _ = m.Do(http.MethodGet, "/instance/list", "serviceName=svc") })
}

// TestBeatsUnderLoad_AreAnsweredInTime: under load a beat took over ten seconds, and clients
// that had beaten in time were given up (hashicorp/consul #3852, #6016; alibaba/nacos
// #8597).
func TestBeatsUnderLoad_AreAnsweredInTime(t *testing.T) {
	const instances, beaters = 600, 12
	c := clustertest.Start(t, 3, func(o *app.Options) { o.ElectionTimeout = 2 * time.Second }) // elections are not what is looked at
	fill(t, c, "svc", 1000, 1000+instances, timeouts(2000, 30_000, 60_000))
	cr := crowd{c: c, done: make(chan struct{})}
	cr.disturb()
	var mu sync.Mutex
	var took []time.Duration
	cr.join(beaters, func(m *member, k, i int) {
		start := time.Now()
		a, err := m.Beat("svc", "10.1.0.1", 1000+(i*beaters+k)%instances)
		if err != nil || !strings.Contains(a.Body, `"code":10200`) {
			t.Errorf("beat: %v %d %s", err, a.Status, a.Body)
		}
		mu.Lock()
		defer mu.Unlock()
		took = append(took, time.Since(start))
	})
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end) && !t.Failed(); <-time.After(100 * time.Millisecond) {
		if n := c.Leader().Healthy("svc"); n != instances {
			t.Errorf("%d healthy of %d that beat", n, instances)
		}
	}
	cr.end()
	slices.Sort(took)
	p99 := took[len(took)*99/100]
	t.Logf("%d beats, 99th of 100 %s", len(took), p99)
	if p99 > 5*time.Second { // below one on an idle machine
		t.Errorf("beats took %s (99th of 100)", p99)
	}
}
