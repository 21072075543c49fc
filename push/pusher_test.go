package push

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/rollcall-io/rollcall/registry"
)

func TestPusher_TellsOfEachChangeInTheFormOfTheClient(t *testing.T) {
	w := newWorld(t, nil)
	java, old := newClient(t, "127.0.0.1"), newClient(t, "127.0.0.9")
	java.subscribe(w, key("orders"), nil)
	old.subscribe(w, key("orders"), func(s *registry.Subscriber) { s.Grouped = false; s.Agent = "Nacos-Go-Client:v1.0.1" })

	first := w.put(key("orders"), "10.0.0.1", 80)
	for c, name := range map[*client]string{java: "DEFAULT_GROUP@@orders", old: "orders"} {
		r := c.receive()
		if r.Type != "dom" || r.LastRefTime != first.Stamp || r.list.Stamp != first.Stamp || r.list.Name != name ||
			!slices.Equal(r.list.Hosts, []string{"10.0.0.1:80"}) || r.zipped {
			t.Errorf("%+v", r)
		}
	}
	w.put(key("orders"), "10.0.0.2", 80)
	if r := java.receive(); len(r.list.Hosts) != 2 || r.LastRefTime <= first.Stamp {
		t.Errorf("%+v", r)
	}
}

func TestPusher_NothingIsSentThatTheQueryTold(t *testing.T) {
	w := newWorld(t, nil)
	w.put(key("orders"), "10.0.0.1", 80)
	c := newClient(t, "127.0.0.1")
	c.subscribe(w, key("orders"), nil)
	w.pusher.ServiceChanged(registry.ChangeTask{Kind: registry.TaskResync}) // as after a restored snapshot
	if r, came := c.receiveWithin(100 * time.Millisecond); came {
		t.Errorf("%+v", r)
	}
}

func TestPusher_ChangeBetweenTheAnswerAndTheTableIsPushed(t *testing.T) {
	w := newWorld(t, nil)
	told := w.put(key("orders"), "10.0.0.1", 80)
	w.editQuietly(key("orders"), func(d *registry.Draft) { d.Put(instance("DEFAULT", "10.0.0.2", 80)) })
	c := newClient(t, "127.0.0.1")
	w.pusher.Subscribe(registry.Subscriber{Service: key("orders"), Addr: c.addr}, told)
	if r := c.receive(); len(r.list.Hosts) != 2 {
		t.Errorf("%+v", r)
	}
}

func TestPusher_AnswerThatIsOlderThanAPushIsFollowedByThePresentState(t *testing.T) {
	w := newWorld(t, nil)
	c := newClient(t, "127.0.0.1")
	c.subscribe(w, key("orders"), nil)
	w.put(key("orders"), "10.0.0.1", 80)
	c.ack(c.receive(), `%d`)
	w.pusher.Subscribe(registry.Subscriber{Service: key("orders"), Addr: c.addr, Agent: "Nacos-Java-Client:v1.4.7", Grouped: true}, nil)
	if r := c.receive(); len(r.list.Hosts) != 1 {
		t.Errorf("%+v", r)
	}
}

// A client that throws the answer to its renewal away must still hear of the change.
func TestPusher_RenewalBetweenAChangeAndItsPushDoesNotStandForThePush(t *testing.T) {
	w := newWorld(t, nil)
	c := newClient(t, "127.0.0.1")
	c.subscribe(w, key("orders"), nil)
	w.current.Store(false) // holds pushes back
	changed := w.put(key("orders"), "10.0.0.1", 80)
	c.subscribe(w, key("orders"), nil)
	w.current.Store(true)
	r := c.receive()
	if r.LastRefTime != changed.Stamp || len(r.list.Hosts) != 1 {
		t.Errorf("%+v", r)
	}
	c.ack(r, `%d`)
	c.subscribe(w, key("orders"), nil)
	if r, came := c.receiveWithin(50 * time.Millisecond); came {
		t.Errorf("a renewal without a change was followed by %+v", r)
	}
}

func TestPusher_ChangeWhileSendingIsSentAfterwards(t *testing.T) {
	w := newWorld(t, nil)
	c := newClient(t, "127.0.0.1")
	c.subscribe(w, key("orders"), nil)
	once := make(chan struct{}, 1)
	once <- struct{}{}
	w.rendered = func(*registry.Service) {
		select {
		case <-once: // a change that no feed tells of, in the middle of the push
			w.editQuietly(key("orders"), func(d *registry.Draft) { d.Put(instance("DEFAULT", "10.0.0.2", 80)) })
		default:
		}
	}
	w.put(key("orders"), "10.0.0.1", 80)
	for r := c.receive(); len(r.list.Hosts) != 2; r = c.receive() {
	}
}

func TestPusher_LastInstanceReallyLeaves(t *testing.T) {
	w := newWorld(t, nil)
	w.put(key("orders"), "10.0.0.1", 80)
	c := newClient(t, "127.0.0.1")
	c.subscribe(w, key("orders"), nil)
	stamp := w.remove(key("orders"), "10.0.0.1", 80).Stamp
	r := c.receive()
	if len(r.list.Hosts) != 0 || r.LastRefTime != stamp {
		t.Errorf("%+v", r)
	}
	c.ack(r, `"%d"`)
	w.delete(key("orders")) // nothing new to who knows it empty
	if r, came := c.receiveWithin(100 * time.Millisecond); came {
		t.Errorf("after the clean-up: %+v", r)
	}
}

func TestPusher_ServiceThatIsGoneBeforeItsLastPushIsPushedEmpty(t *testing.T) {
	w := newWorld(t, nil)
	w.put(key("orders"), "10.0.0.1", 80)
	c := newClient(t, "127.0.0.1")
	c.subscribe(w, key("orders"), nil)
	w.editQuietly(key("orders"), func(d *registry.Draft) { d.Remove(instance("DEFAULT", "10.0.0.1", 80).Address, 1) })
	w.delete(key("orders"))
	if r := c.receive(); len(r.list.Hosts) != 0 || r.LastRefTime != w.DeletedStamp() {
		t.Errorf("%+v", r)
	}
}

func TestPusher_EachClusterFilterGetsItsOwnView(t *testing.T) {
	w := newWorld(t, nil)
	all, one := newClient(t, "127.0.0.1"), newClient(t, "127.0.0.1")
	all.subscribe(w, key("orders"), nil)
	one.subscribe(w, key("orders"), func(s *registry.Subscriber) { s.Clusters = "c1" })
	w.edit(key("orders"), func(d *registry.Draft) {
		d.Put(instance("c1", "10.0.0.1", 80))
		d.Put(instance("c2", "10.0.0.2", 80))
	})
	if r := all.receive(); len(r.list.Hosts) != 2 || r.list.Clusters != "" {
		t.Errorf("%+v", r)
	}
	if r := one.receive(); !slices.Equal(r.list.Hosts, []string{"10.0.0.1:80"}) || r.list.Clusters != "c1" {
		t.Errorf("%+v", r)
	}
}

func TestPusher_LongPacketsAreZippedAndTooLongOnesCounted(t *testing.T) {
	w := newWorld(t, nil)
	w.padding.Store(2000)
	c := newClient(t, "127.0.0.1")
	c.subscribe(w, key("orders"), nil)
	w.put(key("orders"), "10.0.0.1", 80)
	if r := c.receive(); !r.zipped || len(r.list.Pad) != 2000 {
		t.Errorf("%+v", r)
	}
	w.padding.Store(200_000)
	w.put(key("orders"), "10.0.0.2", 80)
	until(t, "a drop is counted", func() bool { return testutil.ToFloat64(w.pusher.metrics.dropTooLong) == 1 })
}

func TestPusher_NodeThatHasNotCaughtUpPushesNothingUntilItHas(t *testing.T) {
	w := newWorld(t, nil)
	w.put(key("orders"), "10.0.0.1", 80)
	c := newClient(t, "127.0.0.1")
	c.subscribe(w, key("orders"), nil)
	w.current.Store(false)
	w.remove(key("orders"), "10.0.0.1", 80)
	if r, came := c.receiveWithin(300 * time.Millisecond); came {
		t.Fatalf("%+v", r)
	}
	w.put(key("orders"), "10.0.0.2", 80)
	w.current.Store(true)
	if r := c.receive(); !slices.Equal(r.list.Hosts, []string{"10.0.0.2:80"}) {
		t.Errorf("%+v", r)
	}
}

func TestPusher_BothFamilies(t *testing.T) {
	if c, err := net.ListenUDP("udp6", &net.UDPAddr{IP: net.IPv6loopback}); err != nil {
		t.Log("this machine has no IPv6 loopback; IPv4 alone is tried")
	} else {
		c.Close()
		w := newWorld(t, nil)
		c := newClient(t, "::1")
		c.subscribe(w, key("orders"), nil)
		w.put(key("orders"), "10.0.0.1", 80)
		c.ack(c.receive(), `%d`)
		until(t, "acknowledged", func() bool { return testutil.ToFloat64(w.pusher.metrics.acked) == 1 })
	}
}

func TestPusher_SwitchedOffRefusesAndSendsNothing(t *testing.T) {
	w := newWorld(t, nil)
	c := newClient(t, "127.0.0.1")
	c.subscribe(w, key("orders"), nil)
	w.mu.Lock()
	w.switches.PushEnabled = false
	w.mu.Unlock()
	if w.pusher.Subscribe(registry.Subscriber{Service: key("orders"), Addr: c.addr}, nil) {
		t.Error("a subscription was granted")
	}
	w.put(key("orders"), "10.0.0.1", 80)
	if r, came := c.receiveWithin(100 * time.Millisecond); came {
		t.Errorf("%+v", r)
	}
}

func TestOptions_AllProblemsAreNamed(t *testing.T) {
	_, err := New(Options{})
	for _, part := range []string{"no State", "no Renderer", "no Current", "no Logger", "Lease", "MinMerge", "Senders"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%v does not name %s", err, part)
		}
	}
	w := newWorld(t, nil)
	o := w.pusher.opts
	o.Metrics = nil
	for _, bad := range []string{"nowhere", "127.0.0.1:99999", w.pusher.Addr().String()} {
		o.Addr = bad
		if p, err := New(o); err == nil {
			p.Close()
			t.Errorf("address %q was taken", bad)
		}
	}
}

// peers are other nodes' pushers, or ones that never answer.
type peers []*Pusher

func (p peers) Ask(ctx context.Context, question []byte) (answers [][]byte) {
	for _, other := range p {
		if other == nil {
			<-ctx.Done()
			continue
		}
		if a, err := other.Answer(question); err == nil {
			answers = append(answers, a)
		}
	}
	return append(answers, []byte("not an answer"))
}

func TestPusher_ListsSubscribersOfAllNodesOnce(t *testing.T) {
	other := newWorld(t, nil)
	w := newWorld(t, func(o *Options) { o.Peers, o.PeerTimeout = peers{other.pusher, nil}, 50*time.Millisecond })
	both, there := newClient(t, "127.0.0.1"), newClient(t, "127.0.0.1")
	both.subscribe(w, key("orders"), nil)
	both.subscribe(other, key("orders"), nil)
	there.subscribe(other, key("orders-2"), func(s *registry.Subscriber) { s.App = "shop" })
	q := registry.SubscriberQuery{Namespace: "public", Group: "DEFAULT", Name: "orders"}
	if got := w.pusher.Subscribers(t.Context(), q, false); len(got) != 1 {
		t.Errorf("here alone: %+v", got)
	}
	got := w.pusher.Subscribers(t.Context(), q, true)
	if len(got) != 2 || got[1].Addr != there.addr || got[1].App != "shop" || got[1].Service != key("orders-2") {
		t.Errorf("%+v", got)
	}
	if _, err := w.pusher.Answer([]byte("{")); err == nil {
		t.Error("half a question was answered")
	}
}

func TestPusher_CountsAcrossNodes(t *testing.T) {
	other := newWorld(t, nil)
	w := newWorld(t, func(o *Options) { o.Peers = peers{other.pusher} })
	a, b := newClient(t, "127.0.0.1"), newClient(t, "127.0.0.1")
	a.subscribe(w, key("orders"), nil)
	b.subscribe(other, key("orders"), nil)
	w.put(key("orders"), "10.0.0.1", 80)
	other.put(key("orders"), "10.0.0.1", 80)
	a.receive()
	b.receive()
	c := w.pusher.Counts(t.Context(), true)
	if c.Total != 2 || c.Failed != 0 || len(c.Waiting) != 2 || !strings.Contains(fmt.Sprint(c.Waiting), a.addr.String()) {
		t.Errorf("%+v", c)
	}
	if c := w.pusher.Counts(t.Context(), false); c.Total != 0 {
		t.Errorf("after a reset: %+v", c)
	}
}
