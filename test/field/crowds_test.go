package field

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rollcall-io/rollcall/internal/app"
	"github.com/rollcall-io/rollcall/internal/clustertest"
)

// descriptors is how many files and sockets this process has open.
func descriptors(t *testing.T) int {
	t.Helper()
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(open)
}

// leave sends a request and resets the connection a moment later.
func leave(m *member, text string, after time.Duration) {
	conn, err := net.Dial("tcp", strings.TrimPrefix(m.HTTP, "http://"))
	if err != nil {
		return // its queue is full
	}
	_, _ = conn.Write([]byte(text))
	<-time.After(after)
	_ = conn.(*net.TCPConn).SetLinger(0)
	_ = conn.Close()
}

// TestAbandonedRequests_LeakNothing: clients that left in the middle of a call left behind
// goroutines, watches and descriptors (hashicorp/consul #9647, #15010, #3631).
func TestAbandonedRequests_LeakNothing(t *testing.T) {
	c := startCluster(t)
	fill(t, c, "svc", 0, 100, lasting)
	requests := func(round int) []string {
		return []string{
			"GET " + prefix + "/instance/list?serviceName=svc HTTP/1.1\r\nHost: x\r\n\r\n",
			"GET " + prefix + "/instance/list?serviceName=svc&consistency=linearizable HTTP/1.1\r\nHost: x\r\n\r\n",
			"GET " + prefix + "/instance/list?serviceName=svc&minIndex=99999999 HTTP/1.1\r\nHost: x\r\n\r\n",
			"GET /api/v1/watch?service=svc HTTP/1.1\r\nHost: x\r\n\r\n",
			"GET /api/v1/watch?service=svc&index=99999999&wait=30s HTTP/1.1\r\nHost: x\r\n\r\n",
			"PUT " + prefix + "/instance/beat?serviceName=svc&ip=10.1.0.1&port=1 HTTP/1.1\r\nHost: x\r\n\r\n",
			fmt.Sprintf("POST %s/instance?serviceName=gone&ip=10.1.0.1&port=%d HTTP/1.1\r\nHost: x\r\n\r\n", prefix, round%50),
			"POST " + prefix + "/instance HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 500\r\n\r\nserviceName=",
		}
	}
	storm := func(each int) {
		var wg sync.WaitGroup
		for k := range 16 {
			wg.Go(func() {
				for i := range each {
					all := requests(i)
					leave(c.Members()[(k+i)%3], all[rand.IntN(len(all))], rand.N(30*time.Millisecond))
				}
			})
		}
		wg.Wait()
	}
	storm(5) // what is made once is there
	c.WaitReady()
	goroutines, files := runtime.NumGoroutine(), descriptors(t)
	storm(100)
	c.Until("goroutines and descriptors as before", func() bool {
		return runtime.NumGoroutine() <= goroutines+goroutines/20+5 && descriptors(t) <= files+files/20+5
	})
	t.Logf("goroutines %d, then %d; descriptors %d, then %d", goroutines, runtime.NumGoroutine(), files, descriptors(t))
}

// TestForwardedBeats_OpenNoConnections: each call that a node passed on was a connection of
// its own, and thousands that were closed used up the ports (alibaba/nacos #3651, #11936;
// nacos-sdk-nodejs #61).
func TestForwardedBeats_OpenNoConnections(t *testing.T) {
	var dials atomic.Int64
	c := clustertest.Start(t, 3, func(o *app.Options) {
		o.ElectionTimeout = 2 * time.Second // an election is a reason to connect
		dial := o.DialPeer
		o.DialPeer = func(ctx context.Context, address string) (net.Conn, error) {
			dials.Add(1)
			return dial(ctx, address)
		}
	})
	f := c.Followers()[0]
	fill(t, c, "svc", 0, 200, lasting)
	calls := func(each int) (taken int64) {
		var ok atomic.Int64
		var wg sync.WaitGroup
		for k := range 10 {
			wg.Go(func() {
				for i := range each {
					if a, err := f.Beat("svc", "10.1.0.1", (k*each+i)%200); err == nil && a.Status == http.StatusOK {
						ok.Add(1)
					}
					if i%10 == 0 {
						_, _ = f.Register("svc", "10.1.0.1", (k*each+i)%200, lasting, fmt.Sprintf("weight=%d", i))
					}
				}
			})
		}
		wg.Wait()
		return ok.Load()
	}
	calls(20)
	before := dials.Load()
	taken := calls(200)
	if opened := dials.Load() - before; opened > 10 || taken == 0 {
		t.Errorf("%d connections between nodes for %d beats, %d before them", opened, taken, before)
	}
}

// TestVeryLargeService_IsServedWhole: thousands of hosts in one service were more than a
// message may hold, or each change cost a full copy for every subscriber (alibaba/nacos
// #7429).
func TestVeryLargeService_IsServedWhole(t *testing.T) {
	const instances, changes = 1500, 10
	c := startCluster(t)
	padded := strings.Replace(lasting, "metadata=%7B", "metadata=%7B%22k%22%3A%22"+strings.Repeat("v", 250)+"%22%2C", 1)
	fill(t, c, "svc", 0, instances, padded)
	for i := range 30 {
		subscribeAt(t, c.Members()[i%3], "serviceName=svc", "127.0.0.1", newSubscriber(t).conn.LocalAddr().(*net.UDPAddr).Port)
	}
	stop := repeatedly(func() { _, _ = c.Members()[0].Beat("svc", "10.1.0.1", rand.IntN(instances)) }, func() { _, _ = c.Members()[1].Beat("svc", "10.1.0.1", rand.IntN(instances)) })
	defer stop()
	var took []time.Duration
	for i := range changes {
		fill(t, c, "svc", i, i+1, padded, fmt.Sprintf("weight=%d", 2+i))
		start := time.Now()
		text := must(t, c.Members()[i%3], http.MethodGet, "/instance/list", "serviceName=svc")
		took = append(took, time.Since(start))
		var list struct{ Hosts []json.RawMessage }
		if err := json.Unmarshal([]byte(text), &list); err != nil || len(list.Hosts) != instances {
			t.Fatalf("%d of %d hosts in %d bytes, %v", len(list.Hosts), instances, len(text), err)
		}
	}
	slices.Sort(took)
	t.Logf("lists of %d hosts between changes: median %s, longest %s", instances, took[changes/2], took[changes-1])
	for _, m := range c.Members() {
		c.Until("all of them with the last weight on "+m.ID, func() bool {
			return m.Healthy("svc") == instances && strings.Contains(detail(m, "svc", "10.1.0.1", changes-1), fmt.Sprintf(`"weight":%d.0`, 1+changes))
		})
	}
}
