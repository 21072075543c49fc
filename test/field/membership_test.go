package field

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rollcall-io/rollcall/internal/app"
	"github.com/rollcall-io/rollcall/internal/clustertest"
	"github.com/rollcall-io/rollcall/internal/loopback"
)

// voters are the members that a node knows, id and peer address, in the order of their ids.
func voters(m *member) []string {
	var all []string
	for _, s := range m.Node.Raft().Members() {
		all = append(all, fmt.Sprintf("%s at %s, voter %t", s.ID, s.PeerAddress, s.Voter))
	}
	slices.Sort(all)
	return all
}

// wantMembers waits until all running nodes know just the nodes of the cluster, as voters;
// moved are the addresses of those that are not at their first one.
func wantMembers(t *testing.T, c *cluster, moved map[*member]string) {
	t.Helper()
	var want []string
	for _, m := range c.Members() {
		want = append(want, fmt.Sprintf("%s at %s, voter true", m.ID, cmp.Or(moved[m], m.Peer)))
	}
	slices.Sort(want)
	for _, m := range c.Running() {
		got := voters(m)
		for end := time.Now().Add(30 * time.Second); !slices.Equal(got, want) && time.Now().Before(end); <-time.After(20 * time.Millisecond) {
			got = voters(m)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s knows %v, want %v", m.ID, got, want)
		}
	}
}

// TestWipedNode_ComesBackUnderLoadAndDisturbsNobody: a node that returned with an empty
// disk panicked, voted twice or was refused for ever (etcd-io/etcd #3504, #20269, #2907;
// hashicorp/raft #502).
func TestWipedNode_ComesBackUnderLoadAndDisturbsNobody(t *testing.T) {
	c := clustertest.Start(t, 3, func(o *app.Options) {
		o.ElectionTimeout = 2 * time.Second // a busy machine may stand still for a moment
		o.SnapshotEntries, o.SnapshotInterval, o.TrailingLogs = 50, 100*time.Millisecond, 10
	})
	wiped := c.Followers()[0]
	rest := others(c, wiped)
	term := c.Leader().Node.Raft().Status().Term
	all := writeThroughout(c, rest, "svc", func() {
		<-time.After(300 * time.Millisecond)
		wiped.Stop()
		wiped.Wipe()
		wiped.Start()
		c.Until("the wiped node ready", func() bool { return wiped.Node.Raft().Ready() == nil })
	})
	if now := c.Leader().Node.Raft().Status().Term; now > term+1 {
		t.Errorf("term %d, was %d before the node came back", now, term)
	}
	checkWrites(t, c, "svc", all)
	wantMembers(t, c, nil)
}

// TestNewAddressOrName_LeavesNoGhostVoter: a node under its name at a new address, or under
// a new name at its address, could not join, or its old self stayed a voter whom the
// majority waited for (rqlite/rqlite PR #2778, #818, #1290).
func TestNewAddressOrName_LeavesNoGhostVoter(t *testing.T) {
	var moving, address atomic.Value // id of the node that moves, and where to
	moving.Store("")
	address.Store(loopback.FreeAddress(t))
	c := clustertest.Start(t, 3, func(o *app.Options) {
		if o.NodeID == moving.Load() {
			o.PeerAddr = address.Load().(string)
			o.Advertise = o.PeerAddr
		}
		dial := o.DialPeer
		o.DialPeer = func(ctx context.Context, to string) (net.Conn, error) {
			if to == address.Load() {
				return new(net.Dialer).DialContext(ctx, "tcp", to)
			}
			return dial(ctx, to)
		}
	})
	c.Leader().MustRegister("svc", "10.1.0.1", 1, lasting)
	moved := c.Followers()[0]
	moved.Stop()
	moving.Store(moved.ID)
	moved.Start()
	c.WaitReady()
	at := map[*member]string{moved: address.Load().(string)}
	wantMembers(t, c, at)

	followers := c.Followers()
	renamed := followers[0]
	if renamed == moved {
		renamed = followers[1]
	}
	renamed.Stop()
	renamed.Wipe()
	renamed.ID = "another"
	renamed.Start()
	c.WaitReady()
	wantMembers(t, c, at)

	// Three voters and no ghost: any one of them may go.
	for _, m := range c.Members() {
		m.Stop()
		c.Until("a write without "+m.ID, func() bool {
			a, err := c.Running()[0].Register("svc", "10.1.0.1", 2, lasting)
			return err == nil && a.Status == http.StatusOK
		})
		m.Start()
		c.WaitReady()
	}
	for _, m := range c.Members() {
		c.Until("both instances on "+m.ID, func() bool { hosts, err := m.List("svc"); return err == nil && len(hosts) == 2 })
	}
}

// TestBootstrapFlagLeftOn_IsWithoutEffect: with the flag in the unit file each start formed
// the configuration anew, failed, or made a second cluster (seaweedfs/seaweedfs #10880;
// hashicorp/raft #336, #532; rqlite/rqlite #1581).
func TestBootstrapFlagLeftOn_IsWithoutEffect(t *testing.T) {
	var turned atomic.Int32
	c := clustertest.Start(t, 3, func(o *app.Options) {
		for range turned.Load() {
			o.Join = append(o.Join[1:], o.Join[0])
		}
		if turned.Load() > 2 {
			slices.Reverse(o.Join)
		}
	})
	c.Leader().MustRegister("svc", "10.1.0.1", 1, lasting)
	wantMembers(t, c, nil)
	id := c.Leader().Node.State().ClusterID()
	before := voters(c.Leader())
	same := func(when string) {
		t.Helper()
		c.WaitReady()
		for _, m := range c.Members() {
			if got := m.Node.State().ClusterID(); got != id || !slices.Equal(voters(m), before) {
				t.Errorf("%s: %s is of cluster %q with %v, was %q with %v", when, m.ID, got, voters(m), id, before)
			}
			c.Until("the instance on "+m.ID, func() bool { return m.Healthy("svc") == 1 })
		}
	}
	for _, m := range c.Members() {
		m.Stop()
		m.Start()
		same("restarted " + m.ID)
	}
	for range 4 {
		turned.Add(1)
		for _, m := range c.Members() {
			m.Stop()
		}
		for _, m := range c.Members() {
			m.Start()
		}
		same(fmt.Sprintf("all restarted, the list of peers turned %d times", turned.Load()))
	}
}

// TestBootOrder_NoDeadlockOfNamesAndReadiness: each node waited for the name of the next,
// which there is only once that is ready (alibaba/nacos #1660). Here the name of a node that
// does not run is not known, and nodes with data start in each order.
func TestBootOrder_NoDeadlockOfNamesAndReadiness(t *testing.T) {
	var c *cluster
	var known [3]atomic.Bool
	setUp := make(chan struct{})
	c = clustertest.Start(t, 3, func(o *app.Options) {
		dial := o.DialPeer
		o.DialPeer = func(ctx context.Context, address string) (net.Conn, error) {
			select {
			case <-setUp:
			default:
				return dial(ctx, address)
			}
			for i, m := range c.Members() {
				if m.Peer == address && !known[i].Load() {
					return nil, &net.DNSError{Err: "no such host", Name: m.ID, IsNotFound: true}
				}
			}
			return dial(ctx, address)
		}
	})
	close(setUp)
	c.Leader().MustRegister("svc", "10.1.0.1", 1, lasting)
	for _, order := range [][]int{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}} {
		for i, m := range c.Members() {
			m.Stop()
			known[i].Store(false)
		}
		start := func(i int) *member {
			known[i].Store(true)
			c.Members()[i].Start()
			return c.Members()[i]
		}
		first := start(order[0])
		for end := time.Now().Add(700 * time.Millisecond); time.Now().Before(end); <-time.After(100 * time.Millisecond) {
			live, ready := raw(t, first, step{method: http.MethodGet, target: "/livez"}), raw(t, first, step{method: http.MethodGet, target: "/readyz"})
			if live.status != http.StatusOK || ready.status != http.StatusServiceUnavailable {
				t.Fatalf("%v: alone it is live %d, ready %d %s", order, live.status, ready.status, ready.body)
			}
		}
		start(order[1])
		c.WaitReady()
		if a, err := first.Register("svc", "10.1.0.1", 1, lasting); err != nil || a.Status != http.StatusOK && !strings.Contains(a.Body, "leader") {
			t.Errorf("%v: a write with two of three: %v %+v", order, err, a)
		}
		start(order[2])
		c.WaitReady()
	}
}
