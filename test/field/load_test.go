package field

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestBeatsUnderLoad_AreAnsweredInTime: under load a beat took over ten seconds, and clients
// that had beaten in time were given up (hashicorp/consul #3852, #6016; alibaba/nacos
// #8597). Instances are written and lists read as fast as two clients of each can.
func TestBeatsUnderLoad_AreAnsweredInTime(t *testing.T) {
	const instances, beaters = 600, 12
	c := startCluster(t)
	for i := range instances {
		c.Members()[i%3].MustRegister("svc", "10.1.0.1", 1000+i, timeouts(1000, 4000, 8000))
	}
	done := make(chan struct{})
	var wg sync.WaitGroup
	run := func(n int, f func(m *member, k, i int)) {
		for k := range n {
			wg.Go(func() {
				for i := 0; ; i++ {
					f(c.Members()[(k+i)%3], k, i)
					select {
					case <-done:
						return
					case <-time.After(time.Millisecond):
					}
				}
			})
		}
	}
	run(2, func(m *member, k, i int) {
		if _, err := m.Register(fmt.Sprintf("other-%d", k), "10.1.0.2", i%60000, lasting); err == nil {
			_, _ = m.Deregister(fmt.Sprintf("other-%d", k), "10.1.0.2", i%60000)
		}
	})
	run(2, func(m *member, _, _ int) { _, _ = m.Do(http.MethodGet, "/instance/list", "serviceName=svc") })
	var mu sync.Mutex
	var took []time.Duration
	run(beaters, func(m *member, k, i int) {
		start := time.Now()
		a, err := m.Beat("svc", "10.1.0.1", 1000+(i*beaters+k)%instances)
		if err != nil || !strings.Contains(a.Body, `"code":10200`) {
			t.Errorf("beat: %v %d %s", err, a.Status, a.Body)
		}
		mu.Lock()
		defer mu.Unlock()
		took = append(took, time.Since(start))
	})
	for end := time.Now().Add(6 * time.Second); time.Now().Before(end); <-time.After(100 * time.Millisecond) {
		if n := c.Leader().Healthy("svc"); n != instances {
			t.Errorf("%d healthy of %d that beat", n, instances)
			break
		}
	}
	close(done)
	wg.Wait()
	slices.Sort(took)
	if p99 := took[len(took)*99/100]; p99 > time.Second {
		t.Errorf("beats took %s (99th of 100)", p99)
	} else {
		t.Logf("%d beats, 99th of 100 %s", len(took), p99)
	}
}
