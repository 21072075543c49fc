package e2e

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/rollcall-io/rollcall/test/e2e/nodes"
	"github.com/rollcall-io/rollcall/test/faults/figures"
)

// freshRead reads linearizably through a node and returns the weight of the only
// instance; -1 when the node did not answer 200.
func freshRead(n *nodes.Node, service string) int {
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Second)
	defer cancel()
	a, err := n.Send(ctx, http.MethodGet, nodes.NS+"/instance/list", url.Values{"serviceName": {service}, "consistency": {"linearizable"}})
	var list struct{ Hosts []nodes.Host }
	if err != nil || a.Status != http.StatusOK || json.Unmarshal([]byte(a.Body), &list) != nil || len(list.Hosts) != 1 {
		return -1
	}
	return int(list.Hosts[0].Weight)
}

// TestLeaderPaused_AReadWhenItGoesOnIsFresh: a leader that stood still while another was
// elected believes for a moment that it still leads. Reads wait for it by then.
func TestLeaderPaused_AReadWhenItGoesOnIsFresh(t *testing.T) {
	row := figures.Track(t, "linearizable read of a leader that stood still")
	c := nodes.Start(t, binary, 3)
	in := nodes.Instance{Service: "svc", IP: "10.0.0.1", Port: 80}.Lasting()
	write := func(n *nodes.Node, weight int) bool {
		form := in.Registration()
		form.Set("weight", strconv.Itoa(weight))
		a, err := n.Do(http.MethodPost, "/instance", form)
		return err == nil && a.OK()
	}
	answered := 0
	for round := 1; round <= either(4, 20); round++ {
		c.WaitReady(c.Nodes()...)
		old := c.Leader()
		c.Until("first write", func() bool { return write(old, 2*round) })
		old.Signal(syscall.SIGSTOP)
		rest := c.Others(old)
		c.Until("write while the leader stands still", func() bool { return write(rest[0], 2*round+1) })
		var reads sync.WaitGroup
		var fresh, stale atomic.Int64
		for range 32 {
			reads.Go(func() {
				switch freshRead(old, in.Service) {
				case 2*round + 1:
					fresh.Add(1)
				case -1:
				default:
					stale.Add(1)
				}
			})
		}
		pass(200 * time.Millisecond) // they are in the kernel's hands
		old.Signal(syscall.SIGCONT)
		reads.Wait()
		row.Rounds++
		answered += int(fresh.Load())
		if n := stale.Load(); n > 0 {
			t.Errorf("round %d: %d of 32 linearizable reads show what was before the newest acknowledged write", round, n)
		}
	}
	row.Operations = 32 * row.Rounds
	row.Wrote(2*row.Rounds, 2*row.Rounds, 0)
	t.Logf("%d reads answered with the newest value", answered)
	if answered == 0 {
		t.Error("not one read was answered")
	}
}
