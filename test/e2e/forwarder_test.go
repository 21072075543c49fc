package e2e

import (
	"fmt"
	"testing"
	"time"

	"github.com/rollcall-io/rollcall/test/e2e/nodes"
	"github.com/rollcall-io/rollcall/test/faults/figures"
)

// TestForwarderKilled_WhatItAcknowledgedIsThere: a follower dies while it forwards writes.
// What it answered ok for is committed, and the others list it while it is down.
func TestForwarderKilled_WhatItAcknowledgedIsThere(t *testing.T) {
	row := figures.Track(t, "follower killed while it forwards")
	for round := range either(2, 10) {
		// Each with nodes of its own: the writers of each send the same instances.
		t.Run(fmt.Sprint(round), func(t *testing.T) { killForwarder(t, row) })
	}
}

func killForwarder(t *testing.T, row *figures.Row) {
	c := nodes.Start(t, binary, 3)
	f := c.Followers()[0]
	writers := c.Write(32, time.Millisecond, func() []*nodes.Node { return []*nodes.Node{f} })
	pass(700 * time.Millisecond)
	f.Kill()
	pass(200 * time.Millisecond) // refused connections: nothing is acknowledged any more
	acked := writers.Stop()
	total := 0
	for service, keys := range acked {
		for _, other := range c.Others(f) {
			c.Until("what was acknowledged, on "+other.ID, func() bool { return notListed(other, service, keys) == "" })
		}
		total += len(keys)
	}
	if total == 0 {
		t.Error("nothing was acknowledged")
	}
	row.Rounds++
	row.Wrote(writers.Sent(), total, 0)
	f.Start()
	c.WaitReady(f)
	wantSameState(t, c)
}
