package clustertest

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rollcall-io/rollcall/internal/app"
)

// watchEvent is one object of a watch.
type watchEvent struct {
	Index    uint64
	Service  string
	Reason   string
	Reset    bool
	Part     int
	More     bool
	Added    []watchHost
	Removed  []watchHost
	Modified []watchHost
	Services []struct {
		Service string
		Hosts   []watchHost
	}
}

type watchHost struct {
	IP     string
	Port   int
	Weight float64
}

// watcher builds up the state of `w*` services from a stream, wherever it is connected.
type watcher struct {
	c      *Cluster
	state  map[string]float64
	buffer []watchEvent // of a batch that is not complete
	last   string       // id to come back with
	at     uint64
	resets int
	heard  func() // called after each batch, may be nil
}

func (w *watcher) apply(e watchEvent) {
	if e.Index < w.at {
		w.c.t.Errorf("index %d after %d", e.Index, w.at)
	}
	w.at = e.Index
	if e.Reset {
		if e.Part == 0 {
			w.resets++
			clear(w.state)
		}
		for _, s := range e.Services {
			for _, h := range s.Hosts {
				w.state[name(s.Service, h)] = h.Weight
			}
		}
	}
	for _, h := range e.Added {
		if _, known := w.state[name(e.Service, h)]; known {
			w.c.t.Errorf("%s was added twice", name(e.Service, h))
		}
		w.state[name(e.Service, h)] = h.Weight
	}
	for _, h := range e.Modified {
		if _, known := w.state[name(e.Service, h)]; !known {
			w.c.t.Errorf("%s was modified and not known", name(e.Service, h))
		}
		w.state[name(e.Service, h)] = h.Weight
	}
	for _, h := range e.Removed {
		if _, known := w.state[name(e.Service, h)]; !known {
			w.c.t.Errorf("%s was removed and not known", name(e.Service, h))
		}
		delete(w.state, name(e.Service, h))
	}
}

// watchAll are the services of the tests below.
const watchAll = "/api/v1/watch?services=w*"

func name(service string, h watchHost) string { return fmt.Sprintf("%s %s:%d", service, h.IP, h.Port) }

// listen follows a stream until ctx or the stream ends.
func (w *watcher) listen(ctx context.Context, url string) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		w.c.t.Error(err)
		return
	}
	if w.last != "" {
		req.Header.Set("Last-Event-ID", w.last)
	}
	resp, err := (&http.Client{Transport: w.c.transport}).Do(req)
	if err != nil {
		return
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return
	}
	w.buffer = nil
	id := ""
	lines := bufio.NewReader(resp.Body)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			return
		}
		line = strings.TrimSuffix(line, "\n")
		if text, ok := strings.CutPrefix(line, "id: "); ok {
			id = text
		} else if text, ok := strings.CutPrefix(line, "data: "); ok {
			var e watchEvent
			if err := json.Unmarshal([]byte(text), &e); err != nil {
				w.c.t.Errorf("%q: %v", text, err)
				return
			}
			w.buffer = append(w.buffer, e)
		} else if line == "" && id != "" { // the batch is whole
			for _, e := range w.buffer {
				w.apply(e)
			}
			w.buffer, w.last, id = nil, id, ""
			if w.heard != nil {
				w.heard()
			}
		}
	}
}

// contents is what a node lists of the watched services.
func contents(m *Member, services int) (map[string]float64, error) {
	all := make(map[string]float64)
	for i := range services {
		service := fmt.Sprintf("w%d", i)
		a, err := m.Do(http.MethodGet, "/instance/list", "serviceName="+service+"&consistency=linearizable")
		if err != nil || a.Status != http.StatusOK {
			return nil, fmt.Errorf("%d %w", a.Status, err)
		}
		var l struct{ Hosts []watchHost }
		if err := json.Unmarshal([]byte(a.Body), &l); err != nil {
			return nil, err
		}
		for _, h := range l.Hosts {
			all[name(service, h)] = h.Weight
		}
	}
	return all, nil
}

// A watcher that is killed, comes back at any node, and lives through leader changes,
// stopped nodes and a node that starts from another's snapshot, ends on the state.
func TestCluster_WatcherRebuildsTheStateThroughEverything(t *testing.T) {
	c := Start(t, 3, func(o *app.Options) {
		o.SnapshotInterval, o.SnapshotEntries, o.TrailingLogs = 200*time.Millisecond, 200, 50
	})
	const services, changes = 8, 10_000
	var urls atomic.Value
	publish := func() {
		var up []string
		for _, m := range c.Running() {
			up = append(up, m.HTTP)
		}
		urls.Store(up)
	}
	publish()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var group sync.WaitGroup
	var done atomic.Int64
	for k := range 16 {
		random := rand.New(rand.NewPCG(1, uint64(k)))
		group.Go(func() {
			for ctx.Err() == nil && done.Add(1) <= changes {
				c.change(urls.Load().([]string), random, services)
			}
		})
	}
	w := &watcher{c: c, state: make(map[string]float64)}
	var following sync.WaitGroup
	stop, ended := context.WithCancel(t.Context())
	defer ended()
	following.Go(func() {
		random := rand.New(rand.NewPCG(2, 2))
		for stop.Err() == nil {
			up := urls.Load().([]string)
			some, end := context.WithTimeout(stop, time.Duration(1+random.IntN(400))*time.Millisecond)
			w.listen(some, up[random.IntN(len(up))]+watchAll)
			end()
		}
	})
	for round := 0; done.Load() < changes; round++ {
		was := done.Load()
		progress(c, &done, min(changes, was+changes/8))
		m := c.Leader()
		if round%2 == 1 {
			m = c.Followers()[0]
		}
		m.Stop()
		publish()
		progress(c, &done, min(changes, was+changes/6))
		if round%2 == 1 {
			m.Wipe() // comes back with a snapshot of another node
		}
		m.Start()
		c.WaitReady()
		publish()
	}
	group.Wait()
	ended()
	following.Wait()
	for _, m := range c.Running() {
		w.endsOn(t, m, services)
	}
	t.Logf("%d full states, index %d", w.resets, w.at)
}

// progress waits for a number of changes, as long as there are any.
func progress(c *Cluster, done *atomic.Int64, want int64) {
	c.t.Helper()
	for now := done.Load(); now < want; now = done.Load() {
		c.Until(fmt.Sprintf("change after %d", now), func() bool { return done.Load() > now })
	}
}

// endsOn lets the watcher hear the rest of the story from a node and compares: nothing
// changes any more, so that what was missed stays missed.
func (w *watcher) endsOn(t *testing.T, m *Member, services int) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; {
		last, end := context.WithTimeout(t.Context(), 500*time.Millisecond)
		w.listen(last, m.HTTP+watchAll)
		end()
		want, err := contents(m, services)
		if err == nil && maps.Equal(w.state, want) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("watcher holds %v at %d, %s lists %v (%v)", w.state, w.at, m.ID, want, err)
		}
	}
}

// change sends one random write to one of the nodes; what is refused is no matter.
func (c *Cluster) change(urls []string, random *rand.Rand, services int) {
	method, weight := http.MethodPost, 1+random.IntN(9)
	if random.IntN(3) == 0 {
		method = http.MethodDelete
	}
	url := fmt.Sprintf("%s%s/instance?serviceName=w%d&ip=10.0.0.%d&port=80&weight=%d&%s",
		urls[random.IntN(len(urls))], nacos, random.IntN(services), random.IntN(6), weight, long)
	req, err := http.NewRequest(method, url, nil)
	if err != nil {
		c.t.Error(err)
		return
	}
	resp, err := (&http.Client{Transport: c.transport, Timeout: clientTimeout}).Do(req)
	if err != nil {
		return
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
}
