package push

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/rollcall-io/rollcall/registry"
)

// A client that names somebody else's address must not make a node flood it: each cluster
// list is a subscription of its own, and each change goes to all.
func TestPusher_NamedAddressIsNotFlooded(t *testing.T) {
	began := time.Now()
	w := newWorld(t, nil)
	w.padding.Store(20_000) // noise, which does not shrink
	victim, asker := newClient(t, "127.0.7.7"), newClient(t, "127.0.8.8")
	const subscriptions = 100
	for i := range subscriptions {
		victim.subscribe(w, key("fat"), func(s *registry.Subscriber) { s.Clusters, s.Named = fmt.Sprint(i), true })
	}
	asker.subscribe(w, key("fat"), nil)
	for i := range 3 {
		w.put(key("fat"), "10.0.0.1", 80+i)
		asker.ack(asker.receive(), `"%d"`)
	}
	// Changes that come while one is being told are merged: only the first is sure to meet
	// every subscription on its own.
	until(t, "most packets are dropped", func() bool {
		return testutil.ToFloat64(w.pusher.metrics.dropStranger) >= subscriptions-strangerBurst/10_000
	})
	n, took := testutil.ToFloat64(w.pusher.metrics.sent), time.Since(began)
	if n > (strangerBurst+strangerRate*took.Seconds())/10_000+4 {
		t.Errorf("%v packets were sent in %s", n, took)
	}
}

// Who acknowledges is sent all there is, from whatever address the query came.
func TestPusher_NamedAddressThatAcknowledgesIsSentAll(t *testing.T) {
	w := newWorld(t, nil)
	w.padding.Store(20_000)
	c := newClient(t, "127.0.7.9")
	c.subscribe(w, key("fat"), func(s *registry.Subscriber) { s.Named = true })
	for i := range 2 * strangerBurst / 20_000 {
		w.put(key("fat"), "10.0.0.1", 80+i)
		c.ack(c.receive(), `"%d"`)
		until(t, "the acknowledgement has come", func() bool { return testutil.ToFloat64(w.pusher.metrics.acked) == float64(i+1) })
	}
}

func TestStrangers(t *testing.T) {
	t.Parallel()
	s, now := newStrangers(), time.Unix(1_800_000_000, 0)
	a, neighbour, other := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.200"), netip.MustParseAddr("198.51.100.1")
	six, next := netip.MustParseAddr("2001:db8::1%eth0"), netip.MustParseAddr("2001:db8::ffff:1")
	for _, ip := range []netip.Addr{a, other, six} {
		if !s.allow(ip, strangerBurst, now) {
			t.Errorf("%s: nothing is allowed at first", ip)
		}
	}
	if s.allow(neighbour, 1, now) || s.allow(next, 1, now) {
		t.Error("a neighbour starts afresh")
	}
	now = now.Add(time.Second)
	if !s.allow(a, strangerRate, now) || s.allow(a, 1, now) {
		t.Error("the rate is not kept")
	}
	s.heard(neighbour)
	if !s.allow(a, strangerBurst, now) {
		t.Error("an acknowledgement does not count")
	}
	s.sweep(now.Add(strangerRefill + time.Second))
	if len(s.left) != 0 {
		t.Errorf("%d are remembered", len(s.left))
	}
}
