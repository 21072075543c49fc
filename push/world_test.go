package push

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"github.com/rollcall-io/rollcall/registry"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is far above what a busy machine needs for anything here.
const patience = 30 * time.Second

// world is a state without a log, a renderer, and a Pusher over both.
type world struct {
	tb      testing.TB
	pusher  *Pusher
	reg     *prometheus.Registry
	current atomic.Bool

	mu       sync.Mutex
	services map[registry.ServiceKey]*registry.Service
	deleted  int64
	index    uint64
	switches registry.Switches
	renders  atomic.Int64
	padding  atomic.Int64 // bytes added to each list
	rendered func(s *registry.Service)
}

func newWorld(tb testing.TB, change func(*Options)) *world {
	tb.Helper()
	w := &world{tb: tb, reg: prometheus.NewRegistry(), services: make(map[registry.ServiceKey]*registry.Service),
		index: 10, switches: registry.DefaultSwitches()}
	w.current.Store(true)
	o := DefaultOptions()
	o.State, o.Renderer, o.Current, o.Metrics = w, w, w.current.Load, w.reg
	if change != nil {
		change(&o)
	}
	p, err := New(o)
	if err != nil {
		tb.Fatal(err)
	}
	w.pusher = p
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- p.Run(ctx) }()
	tb.Cleanup(func() {
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			tb.Errorf("Run: %v", err)
		}
	})
	return w
}

func (w *world) Service(k registry.ServiceKey) *registry.Service {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.services[k]
}

func (w *world) DeletedStamp() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.deleted
}

func (w *world) Switches() registry.Switches {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.switches
}

// list is what the world's renderer makes of a service.
type list struct {
	Name     string
	Clusters string
	Hosts    []string
	Stamp    int64
	Pad      string `json:",omitempty"`
}

func (w *world) PushList(s *registry.Service, clusters string, grouped bool) []byte {
	w.renders.Add(1)
	l := list{Name: s.Key.Name(), Clusters: clusters, Stamp: s.Stamp, Hosts: []string{}}
	if grouped {
		l.Name = s.Key.Grouped
	}
	for _, in := range s.Instances() {
		if clusters == "" || in.Cluster == clusters {
			l.Hosts = append(l.Hosts, fmt.Sprintf("%s:%d", in.IP, in.Port))
		}
	}
	l.Pad = noise(int(w.padding.Load()))
	b, err := json.Marshal(l)
	if err != nil {
		w.tb.Error(err)
	}
	if w.rendered != nil {
		w.rendered(s)
	}
	return b
}

// noise does not zip well.
func noise(n int) string {
	b := make([]byte, n)
	x := uint32(1)
	for i := range b {
		x = x*1664525 + 1013904223
		b[i] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_"[x>>26]
	}
	return string(b)
}

func key(name string) registry.ServiceKey { return registry.NewServiceKey("", "", name) }

// edit changes a service as Apply would and feeds the change.
func (w *world) edit(k registry.ServiceKey, change func(*registry.Draft)) *registry.Service {
	s := w.editQuietly(k, change)
	w.pusher.ServiceChanged(registry.ChangeTask{Kind: registry.TaskChange, Key: k, Revision: s.Revision, Since: time.Now()})
	return s
}

func (w *world) editQuietly(k registry.ServiceKey, change func(*registry.Draft)) *registry.Service {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.index++
	now := time.Now().UnixMilli()
	d := registry.NewDraft(k, now)
	if s := w.services[k]; s != nil {
		d = registry.Edit(s)
	} else {
		d.Service().Stamp = w.deleted
	}
	change(d)
	d.Touch(w.index, now)
	w.services[k] = d.Service()
	return d.Service()
}

func (w *world) put(k registry.ServiceKey, ip string, port int) *registry.Service {
	return w.edit(k, func(d *registry.Draft) { d.Put(instance("DEFAULT", ip, port)) })
}

func (w *world) remove(k registry.ServiceKey, ip string, port int) *registry.Service {
	return w.edit(k, func(d *registry.Draft) { d.Remove(instance("DEFAULT", ip, port).Address, time.Now().UnixMilli()) })
}

func (w *world) delete(k registry.ServiceKey) {
	w.mu.Lock()
	w.deleted = max(w.deleted, w.services[k].Stamp)
	delete(w.services, k)
	w.mu.Unlock()
	w.pusher.ServiceChanged(registry.ChangeTask{Kind: registry.TaskDelete, Key: k, Since: time.Now()})
}

func instance(cluster, ip string, port int) *registry.Instance {
	return &registry.Instance{Spec: registry.Spec{
		Address: registry.Address{Cluster: cluster, IP: ip, Port: uint16(port)}, Ephemeral: true, Enabled: true, Healthy: true, Weight: 1,
	}}
}

// client is a subscriber's end.
type client struct {
	tb   testing.TB
	conn *net.UDPConn
	addr netip.AddrPort
}

func newClient(tb testing.TB, host string) *client {
	tb.Helper()
	conn, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.ParseIP(host)})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { conn.Close() })
	addr := conn.LocalAddr().(*net.UDPAddr).AddrPort()
	return &client{tb, conn, netip.AddrPortFrom(addr.Addr().Unmap(), addr.Port())}
}

// subscribe makes the client a subscriber that has just been told the present state.
func (c *client) subscribe(w *world, k registry.ServiceKey, change func(*registry.Subscriber)) {
	c.tb.Helper()
	s := registry.Subscriber{Service: k, Addr: c.addr, Agent: "Nacos-Java-Client:v1.4.7", Grouped: true}
	if change != nil {
		change(&s)
	}
	if !w.pusher.Subscribe(s, w.Service(k)) {
		c.tb.Fatalf("subscription of %s was refused", k)
	}
}

// packet is one received push.
type received struct {
	Type        string
	Data        string
	LastRefTime int64
	list        list
	zipped      bool
	from        netip.AddrPort
}

// receive waits for one push, or fails the test.
func (c *client) receive() received {
	c.tb.Helper()
	r, ok := c.receiveWithin(patience)
	if !ok {
		c.tb.Fatal("no push came")
	}
	return r
}

func (c *client) receiveWithin(d time.Duration) (r received, ok bool) {
	c.tb.Helper()
	if err := c.conn.SetReadDeadline(time.Now().Add(d)); err != nil {
		c.tb.Fatal(err)
	}
	b := make([]byte, 65536)
	n, from, err := c.conn.ReadFromUDPAddrPort(b)
	if err != nil {
		return r, false
	}
	b, r.from = b[:n], from
	if bytes.HasPrefix(b, []byte{0x1f, 0x8b}) {
		r.zipped = true
		z, err := gzip.NewReader(bytes.NewReader(b))
		if err != nil {
			c.tb.Fatal(err)
		}
		if b, err = io.ReadAll(z); err != nil {
			c.tb.Fatal(err)
		}
	}
	if err := json.Unmarshal(b, &r); err != nil {
		c.tb.Fatalf("%q: %v", b, err)
	}
	if err := json.Unmarshal([]byte(r.Data), &r.list); err != nil {
		c.tb.Fatalf("%q: %v", r.Data, err)
	}
	return r, true
}

// ack acknowledges, with the stamp as a text or as a number.
func (c *client) ack(r received, form string) {
	c.tb.Helper()
	text := fmt.Sprintf(`{"type": "push-ack", "lastRefTime":`+form+`, "data":""}`, r.LastRefTime)
	if _, err := c.conn.WriteToUDPAddrPort([]byte(text), r.from); err != nil {
		c.tb.Fatal(err)
	}
}

// until polls cond.
func until(tb testing.TB, what string, cond func() bool) {
	tb.Helper()
	deadline := time.Now().Add(patience)
	for !cond() {
		if time.Now().After(deadline) {
			tb.Fatalf("still not: %s", what)
		}
		select {
		case <-time.After(time.Millisecond):
		case <-tb.Context().Done():
		}
	}
}
