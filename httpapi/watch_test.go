package httpapi

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/rollcall-io/rollcall/registry"
)

// fakeWatch hands out what the test puts in.
type fakeWatch struct {
	asked   registry.Watch
	err     error
	batches chan registry.WatchBatch
	sent    int
	closed  chan struct{}
}

func newFakeWatch() *fakeWatch {
	return &fakeWatch{batches: make(chan registry.WatchBatch, 10), closed: make(chan struct{})}
}

func (f *fakeWatch) Watch(q registry.Watch) (WatchStream, error) { f.asked = q; return f, f.err }
func (f *fakeWatch) Index() uint64                               { return 99 }
func (f *fakeWatch) Sent(registry.WatchBatch)                    { f.sent++ }
func (f *fakeWatch) Close()                                      { close(f.closed) }
func (f *fakeWatch) Next(ctx context.Context) (registry.WatchBatch, error) {
	select {
	case b, ok := <-f.batches:
		if !ok {
			return b, registry.ErrShuttingDown
		}
		return b, nil
	case <-ctx.Done():
		return registry.WatchBatch{}, ctx.Err()
	}
}

func watched(ip string, weight float64) *registry.Instance {
	return &registry.Instance{Spec: registry.Spec{Address: registry.Address{Cluster: "DEFAULT", IP: ip, Port: 80}, Weight: weight, Enabled: true, Healthy: true}}
}

// manyReasons is a batch of two services, one of which changed for two reasons.
func manyReasons() registry.WatchBatch {
	return registry.WatchBatch{Index: 12, Events: []registry.ServiceEvent{
		{Service: registry.NewServiceKey("", "", "a"), Index: 11, Changes: []registry.InstanceEvent{
			{Reason: registry.ReasonRegistered, After: watched("10.0.0.1", 1)},
			{Reason: registry.ReasonExpired, Before: watched("10.0.0.2", 1)},
			{Reason: registry.ReasonRegistered, After: watched("10.0.0.3", 1)},
		}},
		{Service: registry.NewServiceKey("", "blue", "b"), Index: 12, Edited: true, Deleted: true, Changes: []registry.InstanceEvent{
			{Reason: registry.ReasonUpdated, Before: watched("10.0.0.1", 1), After: watched("10.0.0.1", 2)},
		}},
	}}
}

// told is what the tests look at in an object of a watch.
type told struct {
	Index                    uint64
	Service, Group, Reason   string
	Reset, More, Deleted     bool
	Part                     int
	Added, Removed, Modified []struct{ IP string }
	Services                 []struct{ Service string }
}

func (e told) String() string {
	return fmt.Sprintf("%d %s/%s %s +%d -%d ~%d %v %v", e.Index, e.Group, e.Service, e.Reason, len(e.Added), len(e.Removed), len(e.Modified), e.More, e.Deleted)
}

func TestWatchJSON_OneObjectForEachServiceAndReason(t *testing.T) {
	want := []string{
		"11 DEFAULT_GROUP/a registered +2 -0 ~0 true false",
		"11 DEFAULT_GROUP/a expired +0 -1 ~0 true false",
		"12 blue/b updated +0 -0 ~1 true true",
		"12 blue/b edited +0 -0 ~0 false true",
	}
	i := 0
	err := eachObject(nil, manyReasons(), func(object []byte, last bool) error {
		var e told
		if err := json.Unmarshal(object, &e); err != nil {
			return err
		}
		if e.String() != want[i] || last == e.More {
			t.Errorf("object %d: %s %t", i, e, last)
		}
		i++
		return nil
	})
	if err != nil || i != len(want) {
		t.Errorf("%d objects: %v", i, err)
	}
}

func TestWatchJSON_FullStateComesInParts(t *testing.T) {
	batch := registry.WatchBatch{Index: 5, Reset: true}
	for i := range 450 {
		batch.Services = append(batch.Services, registry.Assemble(registry.Service{Key: registry.NewServiceKey("", "", fmt.Sprint("s", i))}, nil))
	}
	parts, services := 0, 0
	_ = eachObject(nil, batch, func(object []byte, last bool) error {
		var e told
		if err := json.Unmarshal(object, &e); err != nil || !e.Reset || e.Part != parts || e.More == last {
			t.Errorf("%s: %v", object, err)
		}
		parts++
		services += len(e.Services)
		return nil
	})
	if parts != 3 || services != 450 {
		t.Errorf("%d parts with %d services", parts, services)
	}
	_ = eachObject(nil, registry.WatchBatch{Index: 5, Reset: true}, func(object []byte, last bool) error {
		if string(object) != `{"index":5,"reset":true,"part":0,"services":[]}` || !last {
			t.Errorf("%s", object)
		}
		return nil
	})
}

func TestWatch_QueriesAndRefusals(t *testing.T) {
	for query, want := range map[string]string{
		"service=orders": "{public DEFAULT_GROUP orders false 0 false}",
		"serviceName=orders&groupName=blue&namespaceId=test": "{test blue orders false 0 false}",
		"service=blue@@orders&index=7":                       "{public blue orders false 7 true}",
		"services=or*&group=*&namespace=test&index=0":        "{test * or true 0 false}",
		"services=*":            "{public DEFAULT_GROUP  true 0 false}",
		"":                      "needs service=NAME",
		"service=a&services=b*": "cannot be given together",
		"services=orders":       "prefix with *",
		"services=*orders":      "prefix with *",
		"service=a&group=*":     "one group",
		"service=a&index=-1":    "must be an index",
		"service=a&wait=soon":   "must be a duration",
		"service=a&wait=61":     "must be a duration",
		"service=a%20b":         "may only have letters",
	} {
		f := newFakeWatch()
		f.err = registry.ErrOverloaded // enough to see the query
		s, state := newTestServer(t, func(o *Options) { o.Watcher = f })
		state.index = 10
		code, body := askAs(s, "/api/v1/watch?"+query, "curl")
		if strings.HasPrefix(want, "{") {
			if got := fmt.Sprint(f.asked); got != want || code != http.StatusServiceUnavailable {
				t.Errorf("%s: %s, %d", query, got, code)
			}
		} else if code != http.StatusBadRequest || !strings.Contains(body, want) || strings.HasPrefix(body, "caused") {
			t.Errorf("%s: %d %s", query, code, body)
		}
	}
}

func TestWatch_IndexThatThisNodeHasNotReached(t *testing.T) {
	s, _ := newTestServer(t, func(o *Options) { o.Watcher, o.ReadTimeout = newFakeWatch(), 10*time.Millisecond })
	code, body := askAs(s, "/api/v1/watch?service=a&index=1000", "curl")
	if code != http.StatusGatewayTimeout || !strings.Contains(body, "index 1000 is not applied here") {
		t.Errorf("%d %s", code, body)
	}
	s, _ = newTestServer(t, nil)
	if code, _ := askAs(s, "/api/v1/watch?service=a", "curl"); code != http.StatusServiceUnavailable {
		t.Errorf("without watches: %d", code)
	}
}

func TestWatch_LongPoll(t *testing.T) {
	f := newFakeWatch()
	s, _ := newTestServer(t, func(o *Options) { o.Watcher = f })
	if code, body := askAs(s, "/api/v1/watch?service=a&wait=10ms", "curl"); code != 200 || body != `{"index":99,"events":[]}` {
		t.Errorf("%d %s", code, body)
	}
	f = newFakeWatch()
	f.batches <- manyReasons()
	s, _ = newTestServer(t, func(o *Options) { o.Watcher = f })
	_, body := askAs(s, "/api/v1/watch?service=a&wait=5", "curl")
	var answer struct {
		Index  uint64
		Events []told
	}
	if err := json.Unmarshal([]byte(body), &answer); err != nil || answer.Index != 12 || len(answer.Events) != 4 {
		t.Errorf("%s: %v", body, err)
	}
	<-f.closed
	if f.sent != 1 {
		t.Errorf("%d batches noted as sent", f.sent)
	}
}

func TestWatch_StreamBeyondTheTimeoutsOfOrdinaryAnswers(t *testing.T) {
	f := newFakeWatch()
	s, _ := newTestServer(t, func(o *Options) {
		o.Watcher, o.Heartbeat = f, 100*time.Millisecond
		o.HeaderTimeout, o.RequestTimeout, o.AnswerTimeout = time.Second, time.Second, time.Second
	})
	server := httptest.NewUnstartedServer(nil)
	server.Config = s.HTTPServer(t.Context())
	server.Start()
	defer server.Close()
	req, err := http.NewRequest(http.MethodGet, server.URL+"/api/v1/watch?service=a&index=3", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Last-Event-ID", "5")
	resp, err := server.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.Header.Get("Content-Type") != "text/event-stream" || f.asked.After != 5 || resp.Header.Get("X-Rollcall-Node") != "n1" {
		t.Errorf("%v %+v", resp.Header, f.asked)
	}
	lines := bufio.NewScanner(resp.Body)
	var text []string
	heartbeats := 0
	for lines.Scan() {
		switch lines.Text() {
		case ": heartbeat":
			if heartbeats++; heartbeats == 20 { // well over the timeouts
				f.batches <- manyReasons()
				close(f.batches)
			}
		case "", ": watching", "id: 99":
		default:
			text = append(text, lines.Text()[:6])
		}
	}
	if err := lines.Err(); err != nil {
		t.Errorf("the stream was cut: %v", err)
	}
	if got := strings.Join(text, "|"); got != "data: |data: |data: |id: 12|data: " || heartbeats < 20 {
		t.Errorf("%s after %d heartbeats", got, heartbeats)
	}
	<-f.closed
}
