package push

import (
	"fmt"
	"net/netip"
	"runtime"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/rollcall-io/rollcall/registry"
)

// TestPusher_DeadSubscribersLeaveNothingBehind: each push to a client that was gone kept a
// retry and a timer, until the server died of them (alibaba/nacos #720, #10386, #10867,
// #8676). Here a packet that waits is two words of its subscriber, replaced by the next
// one, and it goes with the lease.
func TestPusher_DeadSubscribersLeaveNothingBehind(t *testing.T) {
	const dead, changes = 2000, 30
	w := newWorld(t, func(o *Options) { o.AckTimeout = 2 * time.Second })
	for i := range dead { // nobody listens there
		addr := netip.MustParseAddrPort(fmt.Sprintf("127.7.%d.%d:9", i/250, 1+i%250))
		w.pusher.Subscribe(registry.Subscriber{Service: key("orders"), Addr: addr}, nil)
	}
	before, sent := 0, 0.0
	for i := range changes {
		w.put(key("orders"), "10.0.0.1", 1000+i)
		until(t, "the change was sent to all", func() bool {
			now := testutil.ToFloat64(w.pusher.metrics.sent)
			if more := now - sent; more < dead {
				return false
			}
			sent = now
			return true
		})
		if i == 0 { // the pusher's own are there now
			before = runtime.NumGoroutine()
		}
		if n := runtime.NumGoroutine(); n > before+2 {
			t.Fatalf("%d goroutines, %d before the pushes", n, before)
		}
		w.pusher.mu.Lock()
		queued := len(w.pusher.queue)
		w.pusher.mu.Unlock()
		if queued > 1 {
			t.Fatalf("%d in the queue for one service", queued)
		}
	}
	w.pusher.sweep(time.Now().Add(w.pusher.opts.Lease)) // nobody asked again
	until(t, "nobody is left", func() bool { return w.pusher.size() == 0 })
	if c := w.pusher.Counts(t.Context(), false); len(c.Waiting) != 0 {
		t.Errorf("%d packets wait for clients that are gone", len(c.Waiting))
	}
}
