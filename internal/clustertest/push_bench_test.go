package clustertest

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rollcall-io/rollcall/registry"
)

var pushFor = flag.Duration("push-for", 10*time.Second, "how long BenchmarkPush changes services")

// BenchmarkPush has 1,000 UDP subscribers spread over three nodes and 100 changes a
// second, over 100 services and on one alone. It reports the time from applying the oldest
// change in a push to sending it, by the nodes' own metrics, from the change's own time to
// the client, and how lists fared meanwhile. With a minute of each:
//
//	go test ./internal/clustertest -run '^$' -bench Push -benchtime 1x -push-for 1m
func BenchmarkPush(b *testing.B) {
	for _, services := range []int{100, 1} {
		b.Run(fmt.Sprintf("services=%d", services), func(b *testing.B) {
			for b.Loop() {
				benchmarkPush(b, services)
			}
		})
	}
}

// counted is a subscriber that measures.
type counted struct {
	*udpClient
	service string
	stamp   atomic.Int64
	delays  []time.Duration
}

func benchmarkPush(b *testing.B, services int) {
	const subscribers, rate = 1000, 100
	c := Start(b, 3, nil)
	for i := range services {
		c.Leader().MustRegister(fmt.Sprintf("svc%d", i), "10.0.0.1", 1, long)
	}
	c.Until("all services everywhere", func() bool {
		for _, m := range c.Members() {
			if n, _ := m.Node.State().Counts(); n != services {
				return false
			}
		}
		return true
	})
	var group sync.WaitGroup
	ctx, cancel := context.WithCancel(b.Context())
	clients := make([]*counted, subscribers)
	for i := range clients {
		u := &counted{udpClient: newUDPClient(c), service: fmt.Sprintf("svc%d", i%services)}
		clients[i] = u
		u.stamp.Store(u.query(c.Members()[i%3], u.service).LastRefTime)
		group.Go(func() { u.measure(ctx) })
	}
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	lists := make([]time.Duration, 0, 1<<16)
	group.Go(func() { lists = c.timeLists(ctx, lists) })
	changes := c.changeFor(*pushFor, rate, services)
	c.Until("every subscriber on the final state", func() bool { return c.allFinal(clients) })
	cancel()
	group.Wait()
	runtime.GC()
	runtime.ReadMemStats(&after)
	var delays []time.Duration
	for _, u := range clients {
		delays = append(delays, u.delays...)
	}
	b.ReportMetric(float64(changes), "changes")
	b.ReportMetric(float64(len(delays)), "pushes")
	b.ReportMetric(c.sentQuantile(0.99)*1000, "p99-commit-to-sent-ms")
	b.ReportMetric(ms(delays, 0.5), "p50-newest-change-to-client-ms")
	b.ReportMetric(ms(delays, 0.99), "p99-newest-change-to-client-ms")
	b.ReportMetric(ms(lists, 0.99), "p99-list-ms")
	b.ReportMetric(float64(int64(after.HeapAlloc)-int64(before.HeapAlloc))/(1<<20), "heap-growth-MB")
	c.stop()
	if g := runtime.NumGoroutine(); g > 60 {
		b.Errorf("%d goroutines are left", g)
	}
}

// changeFor changes services in turn, so many times a second, and returns how many
// changes were acknowledged. A slow answer does not hold up the next change.
func (c *Cluster) changeFor(d time.Duration, rate, services int) int {
	tick := time.NewTicker(time.Second / time.Duration(rate))
	defer tick.Stop()
	var writers sync.WaitGroup
	var acked atomic.Int64
	room := make(chan struct{}, 64)
	end := time.Now().Add(d)
	for i := 0; time.Now().Before(end); i++ {
		<-tick.C
		room <- struct{}{}
		writers.Go(func() {
			defer func() { <-room }()
			a, err := c.Members()[i%3].Register(fmt.Sprintf("svc%d", i%services), "10.0.0.1", 1, long, fmt.Sprintf("weight=%d", 1+i%9000))
			if err == nil && a.Status == http.StatusOK {
				acked.Add(1)
			}
		})
	}
	writers.Wait()
	return int(acked.Load())
}

// measure takes pushes until ctx ends.
func (u *counted) measure(ctx context.Context) {
	for ctx.Err() == nil {
		l, ok := u.push(50 * time.Millisecond)
		if !ok {
			continue
		}
		if was := u.stamp.Load(); l.LastRefTime <= was {
			u.c.t.Errorf("%s: stamp %d after %d", u.service, l.LastRefTime, was)
		}
		u.stamp.Store(l.LastRefTime)
		u.delays = append(u.delays, time.Since(time.UnixMilli(l.LastRefTime)))
	}
}

func (c *Cluster) allFinal(clients []*counted) bool {
	for _, u := range clients {
		svc := c.Members()[0].Node.State().Service(registry.NewServiceKey("", "", u.service))
		if svc.Stamp != u.stamp.Load() {
			return false
		}
	}
	return true
}

// timeLists asks for a list every 10 ms.
func (c *Cluster) timeLists(ctx context.Context, took []time.Duration) []time.Duration {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for i := 0; ; i++ {
		select {
		case <-ctx.Done():
			return took
		case <-tick.C:
		}
		began := time.Now()
		if _, err := c.Members()[i%3].List("svc0"); err == nil {
			took = append(took, time.Since(began))
		}
	}
}

func ms(list []time.Duration, quantile float64) float64 {
	if len(list) == 0 {
		return 0
	}
	slices.Sort(list)
	return float64(list[int(float64(len(list)-1)*quantile)].Microseconds()) / 1000
}

// sentQuantile is a quantile of all nodes' rollcall_push_commit_to_sent_seconds for UDP:
// within the bucket that it falls into, as if values were spread evenly.
func (c *Cluster) sentQuantile(q float64) float64 {
	const prefix = `rollcall_push_commit_to_sent_seconds_bucket{transport="udp",le="`
	buckets := make(map[float64]float64)
	for _, m := range c.Members() {
		for _, line := range strings.Split(metricsOf(c.t, c, m), "\n") {
			rest, ok := strings.CutPrefix(line, prefix)
			if !ok {
				continue
			}
			limit, count, _ := strings.Cut(rest, `"} `)
			le, err1 := strconv.ParseFloat(limit, 64)
			n, err2 := strconv.ParseFloat(count, 64)
			if err1 != nil || err2 != nil {
				c.t.Fatalf("%q", line)
			}
			buckets[le] += n
		}
	}
	var limits []float64
	for le := range buckets {
		limits = append(limits, le)
	}
	slices.Sort(limits)
	want := q * buckets[limits[len(limits)-1]]
	low, below := 0.0, 0.0
	for _, le := range limits {
		if buckets[le] >= want {
			return low + (le-low)*(want-below)/max(1, buckets[le]-below)
		}
		low, below = le, buckets[le]
	}
	return low
}
