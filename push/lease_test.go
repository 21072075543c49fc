package push

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/rollcall-io/rollcall/registry"
)

func TestPusher_AckAsTextOrNumberEndsTheWait(t *testing.T) {
	w := newWorld(t, nil)
	for i, form := range []string{`"%d"`, `%d`} {
		c := newClient(t, "127.0.0.1")
		k := key(fmt.Sprintf("orders-%d", i))
		c.subscribe(w, k, nil)
		w.put(k, "10.0.0.1", 80)
		c.ack(c.receive(), form)
		w.untilAcked(i + 1)
		w.acksAreOverdue()
		if r, came := c.receiveWithin(100 * time.Millisecond); came {
			t.Errorf("after an acknowledgement in the form %s came %+v", form, r)
		}
	}
}

// untilAcked waits until so many acknowledgements have come.
func (w *world) untilAcked(n int) {
	w.tb.Helper()
	until(w.tb, "acknowledged", func() bool { return testutil.ToFloat64(w.pusher.metrics.acked) == float64(n) })
}

// acksAreOverdue lets those who are waited for now be late, without the wait.
func (w *world) acksAreOverdue() {
	w.pusher.sweep(time.Now().Add(w.pusher.opts.AckTimeout))
}

func TestPusher_WithoutAnAckThereIsOneRetry(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.AckTimeout = 100 * time.Millisecond })
	c := newClient(t, "127.0.0.1")
	c.subscribe(w, key("orders"), nil)
	w.put(key("orders"), "10.0.0.1", 80)
	first := c.receive()
	if again := c.receive(); again.LastRefTime != first.LastRefTime || again.Data != first.Data {
		t.Errorf("sent %+v, then %+v", first, again)
	}
	if r, came := c.receiveWithin(400 * time.Millisecond); came {
		t.Errorf("a second retry: %+v", r)
	}
	until(t, "the retry is given up", func() bool { return w.pusher.Counts(t.Context(), false).Failed > 0 })
	c1 := w.pusher.Counts(t.Context(), false)
	if c1.Total != 1 || c1.Failed != 1 || len(c1.Waiting) != 0 {
		t.Errorf("%+v", c1)
	}
}

func TestPusher_NoRetryAfterANewerPush(t *testing.T) {
	w := newWorld(t, nil)
	c := newClient(t, "127.0.0.1")
	c.subscribe(w, key("orders"), nil)
	w.put(key("orders"), "10.0.0.1", 80)
	c.receive()
	w.put(key("orders"), "10.0.0.2", 80)
	newer := c.receive()
	c.ack(newer, `%d`)
	w.untilAcked(1)
	w.acksAreOverdue()
	if r, came := c.receiveWithin(100 * time.Millisecond); came {
		t.Errorf("%+v", r)
	}
	w.acksAreOverdue()
	if w.pusher.Counts(t.Context(), false).Failed != 0 {
		t.Error("a push that a newer one replaced counts as failed")
	}
}

func TestPusher_PacketTooLongForItsClientIsNoFault(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.AckTimeout = 50 * time.Millisecond })
	w.padding.Store(8000)
	c := newClient(t, "127.0.0.1")
	c.subscribe(w, key("orders"), func(s *registry.Subscriber) { s.MaxPacket = 4024 })
	w.put(key("orders"), "10.0.0.1", 80)
	c.receive()
	if r, came := c.receiveWithin(200 * time.Millisecond); came {
		t.Errorf("retried: %+v", r)
	}
	if n := w.pusher.Counts(t.Context(), false); n.Failed != 0 {
		t.Errorf("%+v", n)
	}
}

// Subscribers disappeared although they asked again and again, or stayed for ever after
// their client had died (alibaba/nacos #7353, #8478, #9666).
func TestPusher_LeaseIsRenewedByEachQuery(t *testing.T) {
	w := newWorld(t, nil)
	silent, asking := newClient(t, "127.0.0.1"), newClient(t, "127.0.0.1")
	asking.subscribe(w, key("orders"), nil)
	silent.subscribe(w, key("orders"), nil)
	since := time.Now()
	asking.subscribe(w, key("orders"), nil)
	w.pusher.sweep(since.Add(w.pusher.opts.Lease))
	if n := w.pusher.size(); n != 1 {
		t.Fatalf("%d are left when all but one were silent for the time of a lease", n)
	}
	w.put(key("orders"), "10.0.0.1", 80)
	asking.receive()
	if r, came := silent.receiveWithin(50 * time.Millisecond); came {
		t.Errorf("%+v", r)
	}
	w.pusher.sweep(time.Now().Add(w.pusher.opts.Lease))
	until(t, "nothing is left", func() bool {
		w.pusher.mu.Lock()
		defer w.pusher.mu.Unlock()
		return len(w.pusher.subs) == 0 && len(w.pusher.byAddr) == 0 && len(w.pusher.topics) == 0 && len(w.pusher.queue) == 0
	})
}

func TestPusher_TablesAreBounded(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.MaxSubscribers, o.MaxPerAddr = 3, 2 })
	at := func(name, addr string) registry.Subscriber {
		return registry.Subscriber{Service: key(name), Addr: netip.MustParseAddrPort(addr)}
	}
	for i, want := range []bool{true, true, false} {
		if got := w.pusher.Subscribe(at(fmt.Sprint("s", i), "127.0.0.1:9"), nil); got != want {
			t.Errorf("subscription %d at one address: %t", i, got)
		}
	}
	if !w.pusher.Subscribe(at("s0", "127.0.0.1:10"), nil) || w.pusher.Subscribe(at("s0", "127.0.0.1:11"), nil) {
		t.Error("the table takes other than three")
	}
	if !w.pusher.Subscribe(at("s0", "127.0.0.1:9"), nil) {
		t.Error("one who is in the full table was refused")
	}
	if got := testutil.ToFloat64(w.pusher.metrics.refused); got != 2 {
		t.Errorf("%v refusals counted", got)
	}
}

// A fleet of subscribers that were gone held up those that were there (alibaba/nacos #720,
// #10386).
func TestPusher_DeadSubscribersCostTheLivingNothing(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.AckTimeout = 200 * time.Millisecond })
	for i := range 2000 { // nobody listens there
		w.pusher.Subscribe(registry.Subscriber{Service: key("orders"), Addr: netip.MustParseAddrPort(fmt.Sprintf("127.7.%d.%d:9", i/250, 1+i%250))}, nil)
	}
	var living []*client
	for range 5 {
		c := newClient(t, "127.0.0.1")
		c.subscribe(w, key("orders"), nil)
		living = append(living, c)
	}
	for i := range 10 {
		last := w.put(key("orders"), "10.0.0.1", 1000+i)
		began := time.Now()
		for _, c := range living {
			for r := c.receive(); r.LastRefTime != last.Stamp; r = c.receive() {
			}
		}
		// With the wait for one of the dead in it, it would be minutes.
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("change %d took %s to reach the living", i, took)
		}
	}
}

// Of a burst each change was pushed, or the last one was missing (Netflix/eureka #1120,
// #1173).
func TestPusher_BurstIsMergedAndEndsOnTheFinalState(t *testing.T) {
	w := newWorld(t, nil)
	var clients []*client
	for range 20 {
		c := newClient(t, "127.0.0.1")
		c.subscribe(w, key("orders"), nil)
		clients = append(clients, c)
	}
	var last *registry.Service
	for i := range 1000 {
		last = w.put(key("orders"), "10.0.0.1", 1+i%100)
	}
	for _, c := range clients {
		packets, stamp := 0, int64(0)
		for stamp != last.Stamp {
			r := c.receive()
			packets++
			if r.LastRefTime <= stamp {
				t.Fatalf("stamp %d after %d", r.LastRefTime, stamp)
			}
			stamp = r.LastRefTime
		}
		if packets > 50 {
			t.Errorf("%d packets for 1000 changes", packets)
		}
	}
}

func TestPace_FirstAtOnceThenLongerAndLonger(t *testing.T) {
	p := pace{min: 20 * time.Millisecond, max: 500 * time.Millisecond}
	now := time.Unix(1000, 0)
	if due := p.due(now); due != now {
		t.Fatalf("the first is due at %s", due)
	}
	var gaps []time.Duration
	for range 7 { // always several to send
		p.sent(now, 2)
		next := p.due(now)
		gaps = append(gaps, next.Sub(now)/time.Millisecond)
		now = next
	}
	if got := fmt.Sprint(gaps); got != "[20ns 40ns 80ns 160ns 320ns 500ns 500ns]" {
		t.Error(got)
	}
	p.sent(now, 1)
	if next := p.due(now).Sub(now); next != 250*time.Millisecond {
		t.Errorf("after one that came alone the window is %s", next)
	}
	now = now.Add(2 * time.Second)
	if due := p.due(now); due != now {
		t.Error("after a quiet time the first is not due at once")
	}
	if p.sent(now, 5); p.window != 20*time.Millisecond {
		t.Errorf("window %s after a quiet time", p.window)
	}
}

func FuzzParseAck(f *testing.F) {
	for _, s := range []string{`{"type":"push-ack","lastRefTime":"123","data":""}`, `{"type":"push-ack","lastRefTime":123}`, `{"type":"unknown-ack"}`, `{`, `{"type":"push-ack","lastRefTime":-1}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if stamp, ok := parseAck(b); stamp < 0 || stamp != 0 && !ok {
			t.Errorf("%q gives %d, %t", b, stamp, ok)
		}
	})
}
