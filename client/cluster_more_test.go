package client_test

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rollcall-io/rollcall/client"
	"github.com/rollcall-io/rollcall/internal/app"
)

// Nodes whose clocks are half a minute apart: every change is told, whichever node gives
// the stamp.
func TestCluster_SkewedClocks(t *testing.T) {
	skew := map[string]time.Duration{"n1": -30 * time.Second, "n2": 0, "n3": 30 * time.Second}
	_, servers := cluster(t, func(o *app.Options) {
		by := skew[o.NodeID]
		o.WallClock = func() time.Time { return time.Now().Add(by) }
	})
	provider, consumer := newClient(t, nil, servers...), newClient(t, nil, servers...)
	service := follow(t, consumer)
	m := &mirror{t: t, state: map[string]float64{}}
	service.Subscribe(m.event)
	for n := range 12 { // each through the next node
		r := steady("orders", 80)
		r.Weight = float64(n + 1)
		must(t, provider.Register(t.Context(), r))
		until(t, fmt.Sprintf("weight %v", r.Weight), func() bool { return m.is(map[string]float64{"10.0.0.1:80": r.Weight}) })
	}
}

// Without a majority lists are read on, and a registration says that it is pending.
func TestCluster_WithoutAMajority(t *testing.T) {
	c, servers := cluster(t, nil)
	provider := newClient(t, nil, servers...)
	must(t, provider.Register(t.Context(), steady("orders", 80)))
	c.Until("the instance everywhere", func() bool {
		for _, m := range c.Members() {
			if m.Healthy("orders") != 1 {
				return false
			}
		}
		return true
	})
	down := c.Followers()
	for _, m := range down {
		m.Stop()
	}
	consumer := newClient(t, nil, servers...)
	service := follow(t, consumer)
	if n := len(service.Snapshot().All()); n != 1 {
		t.Errorf("%d instances", n)
	}
	within(t, 10*time.Second, "the end of a registration that has five seconds", func() {
		if err := provider.Register(lasting(t, 5*time.Second), steady("orders", 81)); !errors.Is(err, client.ErrPending) {
			t.Errorf("registered without a majority: %v", err)
		}
	})
	for _, m := range down {
		m.Start()
	}
	c.Until("both instances", func() bool { return healthy(service) == 2 })
}

// standardOutput is shared by the nodes.
type standardOutput struct {
	mu   sync.Mutex
	text strings.Builder
}

func (o *standardOutput) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(b)
}

func (o *standardOutput) password() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	m := regexp.MustCompile(`password, shown only this once: (\S+)\n`).FindStringSubmatch(o.text.String())
	if m == nil {
		return ""
	}
	return m[1]
}

// With accounts asked for: registrations, beats, lists and streams carry the token.
func TestCluster_Login(t *testing.T) {
	out := &standardOutput{}
	nodes, servers := cluster(t, func(o *app.Options) { o.Auth, o.Stdout = true, out })
	until(t, "the first account", func() bool { return out.password() != "" })
	for _, m := range nodes.Members() {
		until(t, "the first account on "+m.ID, func() bool { return m.Node.State().Accounts().Key != "" })
	}
	with := func(password string) func(*client.Options) {
		return func(o *client.Options) {
			o.Username, o.Password, o.PollInterval = "admin", password, time.Hour
			o.Timeout, o.AttemptTimeout = time.Minute, 30*time.Second // hashing is slow by intent, more so under the race detector
		}
	}
	c := newClient(t, with(out.password()), servers...)
	service := follow(t, c)
	for n := range 5 {
		must(t, c.Register(t.Context(), steady("orders", 80+n)))
		until(t, "the instance by the stream", func() bool { return healthy(service) == n+1 })
	}
	throughout(t, 4*time.Second, "kept alive", func() bool { return healthy(service) == 5 })
	for what, tweak := range map[string]func(*client.Options){"a wrong password": with("wrong"), "no account": nil} {
		bad := newClient(t, tweak, servers...)
		var e *client.ServerError
		if err := bad.Register(t.Context(), steady("orders", 90)); !errors.As(err, &e) || e.Status != 403 {
			t.Errorf("%s: %v", what, err)
		}
	}
}
