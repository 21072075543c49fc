package clustertest

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func TestCluster_StreamsEndWithTheNode(t *testing.T) {
	c := Start(t, 1, nil)
	m := c.Members()[0]
	var group sync.WaitGroup
	var open atomic.Int64
	for range 50 {
		group.Go(func() {
			resp, err := (&http.Client{Transport: c.transport}).Get(m.HTTP + "/api/v1/watch?service=svc")
			if err != nil {
				t.Error(err)
				return
			}
			defer resp.Body.Close()
			lines := bufio.NewReader(resp.Body)
			if _, err := lines.ReadString('\n'); err != nil {
				t.Error(err)
			}
			open.Add(1)
			if _, err := io.Copy(io.Discard, lines); err != nil {
				t.Errorf("the stream was cut: %v", err)
			}
		})
	}
	c.Until("50 open streams", func() bool { return open.Load() == 50 })
	began := time.Now()
	m.Stop()
	group.Wait()
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("stopping took %s", took)
	}
}

func TestCluster_ThousandWatchersComeAndGoAndLeaveNothing(t *testing.T) {
	c := Start(t, 1, nil)
	m := c.Members()[0]
	before := descriptors(t)
	for range 2 {
		ctx, cancel := context.WithCancel(t.Context())
		var group sync.WaitGroup
		var told atomic.Int64
		for i := range 1000 {
			group.Go(func() {
				w := &watcher{c: c, state: make(map[string]float64), heard: func() { told.Add(1) }}
				w.listen(ctx, fmt.Sprintf("%s/api/v1/watch?service=svc%d", m.HTTP, i%10))
			})
		}
		progress(c, &told, 1000)
		for i := range 10 {
			m.MustRegister(fmt.Sprintf("svc%d", i), "10.0.0.1", 1+int(told.Load()), long)
		}
		progress(c, &told, 2000)
		cancel()
		group.Wait()
		c.Until("no open watch", func() bool { return strings.Contains(metricsOf(t, c, m), "\nrollcall_push_watches 0\n") })
	}
	c.transport.CloseIdleConnections()
	c.Until("descriptors as before", func() bool { return descriptors(t) <= before+20 })
}

// descriptors is the number of open ones of this process.
func descriptors(t *testing.T) int {
	t.Helper()
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Logf("descriptors cannot be counted here: %v", err)
	}
	return len(open)
}

func metricsOf(t testing.TB, c *Cluster, m *Member) string {
	t.Helper()
	resp, err := (&http.Client{Transport: c.transport}).Get(m.HTTP + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
