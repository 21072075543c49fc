package client

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"
)

// held makes a follower that asks nobody.
func heldFollower(t *testing.T) *follower {
	t.Helper()
	c, err := New(Options{Servers: []string{"127.0.0.1:1"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(context.Background()) })
	return newFollower(c, followKey{ServiceName{DefaultGroup, "s"}, ""})
}

func listAt(stamp int64, ips ...string) wireList {
	l := wireList{LastRefTime: stamp}
	for _, ip := range ips {
		l.Hosts = append(l.Hosts, wireHost{IP: ip, Port: 1, Weight: 1, Healthy: true, Enabled: true})
	}
	return l
}

func TestVersion_OrderedServers(t *testing.T) {
	for _, step := range []struct {
		what         string
		stamp        int64
		index        uint64
		want         string
		ips          string
		sinceOlder   time.Duration
		wantInstance string
	}{
		{what: "older stamp, whatever the index", stamp: 99, index: 60, want: "older", ips: "x", wantInstance: "a"},
		{what: "same stamp and content", stamp: 100, index: 60, want: "same", ips: "a", wantInstance: "a"},
		{what: "newer stamp from a node with a lower index", stamp: 101, index: 40, want: "changed", ips: "b", wantInstance: "b"},
		{what: "unknown at a node that is behind", stamp: 0, index: 50, want: "older", wantInstance: "a"},
		{what: "unknown at a node that is ahead", stamp: 0, index: 51, want: "changed"},
		{what: "older for too long: the servers lost it", stamp: 5, index: 7, want: "changed", ips: "c", sinceOlder: insist, wantInstance: "c"},
	} {
		f := heldFollower(t)
		f.mu.Lock()
		f.put(listAt(100, "a"), 50, 1)
		if step.sinceOlder > 0 {
			f.olderSince = time.Now().Add(-step.sinceOlder)
		}
		got := f.put(listAt(step.stamp, strings.Fields(step.ips)...), step.index, 2)
		f.mu.Unlock()
		ip := ""
		if all := f.current.Load().All(); len(all) > 0 {
			ip = all[0].IP
		}
		if got != step.want || ip != step.wantInstance {
			t.Errorf("%s: %s, instance %q; want %s, %q", step.what, got, ip, step.want, step.wantInstance)
		}
	}
}

// The clocks of a stock server's nodes may be half a minute apart: stamps say nothing there.
func TestVersion_StockServersWithSkewedClocks(t *testing.T) {
	f := heldFollower(t)
	f.mu.Lock()
	defer f.mu.Unlock()
	for n, l := range []wireList{listAt(100_000, "a"), listAt(70_000, "b"), listAt(130_000, "c"), listAt(71_000, "d")} {
		if got := f.put(l, 0, uint64(n+2)); got != "changed" {
			t.Errorf("change %d: %s", n, got)
		}
	}
	if got := f.put(listAt(200_000, "late"), 0, 3); got != "older" {
		t.Errorf("the answer to an earlier request that came late: %s", got)
	}
}

// When a list is asked for without a sign of a change.
func TestPlan_WhenToAskNext(t *testing.T) {
	for _, step := range []struct {
		what      string
		cacheFor  time.Duration
		poll      time.Duration
		streaming bool
		want      time.Duration
	}{
		{what: "what the list asks for", cacheFor: 10 * time.Second, want: 10 * time.Second},
		{what: "at least a second", cacheFor: time.Millisecond, want: time.Second},
		{what: "at most a minute", cacheFor: time.Hour, want: time.Minute},
		{what: "rarely while a stream tells", cacheFor: time.Second, streaming: true, want: streamPoll},
		{what: "what the options say", cacheFor: time.Second, streaming: true, poll: 3 * time.Second, want: 3 * time.Second},
	} {
		f := heldFollower(t)
		f.c.opts.PollInterval = step.poll
		f.cacheFor = wireList{CacheMillis: step.cacheFor.Milliseconds()}.cacheFor()
		f.streaming.Store(step.streaming)
		next, failures, _ := f.plan(nil, 2, 0)
		if next > step.want || next < step.want*9/10 || failures != 0 {
			t.Errorf("%s: %s after %d failures, want %s", step.what, next, failures, step.want)
		}
	}
	f, failures, longest := heldFollower(t), 0, time.Duration(0)
	for range 20 {
		var next time.Duration
		next, failures, _ = f.plan(ErrUnavailable, failures, 0)
		longest = max(longest, next)
	}
	if longest > 8*time.Second || failures != 20 {
		t.Errorf("after %d failures %s", failures, longest)
	}
}

func TestParsePush(t *testing.T) {
	packet := `{"type":"dom","data":"{\"name\":\"G@@s\",\"lastRefTime\":1700000000001}","lastRefTime":1700000000001}`
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	if _, err := z.Write([]byte(packet)); err != nil || z.Close() != nil {
		t.Fatal(err)
	}
	for what, b := range map[string][]byte{"plain": []byte(packet), "gzip": zipped.Bytes()} {
		name, stamp, ack := parsePush(b)
		var said map[string]any
		if err := json.Unmarshal(ack, &said); err != nil || name != (ServiceName{"G", "s"}) || stamp != 1700000000001 ||
			said["type"] != "push-ack" || said["lastRefTime"] != "1700000000001" {
			t.Errorf("%s: %v %d %s %v", what, name, stamp, ack, err)
		}
	}
	for _, bad := range []string{"", "{", `{"type":"dump"}`, `{"type":"dom","data":"x"}`, `{"type":"dom","data":"{}"}`, "\x1f\x8b", zipped.String()[:20]} {
		if _, _, ack := parsePush([]byte(bad)); ack != nil {
			t.Errorf("%q was acknowledged", bad)
		}
	}
}

func FuzzParsePush(f *testing.F) {
	f.Add([]byte(`{"type":"dom","data":"{\"name\":\"s\"}","lastRefTime":1}`))
	f.Fuzz(func(t *testing.T, b []byte) { parsePush(b) })
}

func TestEventIndex(t *testing.T) {
	for text, want := range map[string]uint64{
		` {"index":42,"namespace":"public"}`: 42, `{"index":7,"added":[{"ip":"10.0`: 7, `{"index":"x"}`: 0, "": 0, "[1,2": 0,
	} {
		if got := eventIndex(text); got != want {
			t.Errorf("%s: %d", text, got)
		}
	}
}

func TestFileName_LongAndOddNames(t *testing.T) {
	seen := map[string]bool{}
	for _, name := range []string{"..", "a/b", "a%2Fb", strings.Repeat("x", 600), strings.Repeat("x", 601), "ü", "public"} {
		n := fileName(name)
		if len(n) > maxFileName || strings.ContainsAny(n, "/.\\") || seen[n] {
			t.Errorf("%q is %q", name, n)
		}
		seen[n] = true
	}
}

func TestBaseURL(t *testing.T) {
	for in, want := range map[string]string{
		"h": "http://h:8848", "h:1": "http://h:1", "https://h": "https://h:8848", "http://[::1]:2/": "http://[::1]:2", " h ": "http://h:8848",
	} {
		if got, err := baseURL(in); err != nil || got != want {
			t.Errorf("%q: %q, %v", in, got, err)
		}
	}
}
