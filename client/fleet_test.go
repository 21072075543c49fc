package client_test

import (
	"bytes"
	"flag"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/rollcall-io/rollcall/client"
)

var (
	fleetFor     = flag.Duration("fleet", 25*time.Second, "how long the fleet tests keep 10,000 instances alive; 5m is their long form")
	fleetServers = flag.String("fleet-servers", "", "URLs of a running cluster for TestFleet_AgainstServers, with commas")
)

const (
	fleetServices = 100
	fleetEach     = 100
)

// fleet are 10,000 registrations that beat at this interval.
func fleet(interval time.Duration) (all []client.Registration) {
	for s := range fleetServices {
		for i := range fleetEach {
			all = append(all, client.Registration{Service: fmt.Sprint("fleet-", s), IP: fmt.Sprintf("10.0.%d.%d", s, i), Port: 80, Metadata: map[string]string{
				client.MetaBeatInterval:  fmt.Sprint(interval.Milliseconds()),
				client.MetaBeatTimeout:   fmt.Sprint(3 * interval.Milliseconds()),
				client.MetaDeleteTimeout: fmt.Sprint(6 * interval.Milliseconds()),
			}})
		}
	}
	return all
}

// beatGoroutines counts those that run the scheduler or a worker.
func beatGoroutines() (n int) {
	b := make([]byte, 16<<20)
	for one := range bytes.SplitSeq(b[:runtime.Stack(b, true)], []byte("\n\n")) {
		if strings.Contains(string(one), "client.(*Client).startBeats") {
			n++
		}
	}
	return n
}

func cpu(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	must(t, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// 10,000 instances beat from five goroutines, and none falls silent. The interval leaves
// room for a busy machine and the race detector.
func TestFleet_TenThousandInstancesFiveGoroutines(t *testing.T) {
	const interval = 20 * time.Second
	s := startFake(t)
	s.BeatInterval(interval)
	c := newClient(t, func(o *client.Options) { o.Timeout = 20 * time.Second }, s.URL())
	must(t, c.RegisterAll(t.Context(), fleet(interval)))
	throughout(t, *fleetFor, "beating in time", func() bool { return s.Silent(3*interval) == 0 })
	if n := beatGoroutines(); n != 5 {
		t.Errorf("%d goroutines for beats", n)
	}
	until(t, "a beat of each", func() bool { return s.Beats() >= fleetServices*fleetEach && s.Silent(3*interval) == 0 })
	checkRegistered(t, c)
}

func checkRegistered(t *testing.T, c *client.Client) {
	t.Helper()
	for _, st := range c.Registrations() {
		if !st.Registered || st.Failures > 0 {
			t.Fatalf("%s: %+v", st.Registration.Key(), st)
		}
	}
}

// The same against real nodes at the usual interval, when the flag names some: nobody is
// ever seen unhealthy by a second client.
func TestFleet_AgainstServers(t *testing.T) {
	if *fleetServers == "" {
		t.Skip("no -fleet-servers: TestFleet_TenThousandInstancesFiveGoroutines runs without any")
	}
	servers := strings.Split(*fleetServers, ",")
	provider, consumer := newClient(t, nil, servers...), newClient(t, nil, servers...)
	begin := time.Now()
	must(t, provider.RegisterAll(t.Context(), fleet(5*time.Second)))
	t.Logf("10,000 registered in %s", time.Since(begin).Round(time.Millisecond))
	w, seen := &watcher{}, atomic.Int64{}
	for s := range fleetServices {
		service, err := consumer.Follow(t.Context(), client.ServiceName{Name: fmt.Sprint("fleet-", s)})
		must(t, err)
		defer service.Close()
		service.Subscribe(func(e client.Event) { seen.Add(int64(len(e.Added))); w.event(e) })
	}
	until(t, "all instances", func() bool { return seen.Load() == fleetServices*fleetEach })
	before, begin := cpu(t), time.Now()
	throughout(t, *fleetFor, "all healthy", func() bool { w.mu.Lock(); defer w.mu.Unlock(); return len(w.lost) == 0 })
	t.Logf("%.0f %% of a core for both clients", 100*float64(cpu(t)-before)/float64(time.Since(begin)))
	if n := beatGoroutines(); n > 10 { // of two clients
		t.Errorf("%d goroutines for beats", n)
	}
	checkRegistered(t, provider)
}
