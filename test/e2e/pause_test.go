package e2e

import (
	"syscall"
	"testing"
	"time"

	"github.com/rollcall-io/rollcall/test/e2e/nodes"
	"github.com/rollcall-io/rollcall/test/faults/figures"
)

func TestLeaderPaused_NobodyWhoBeatsIsCalledUnhealthyThenOrAfterwards(t *testing.T) {
	row := figures.Track(t, "leader stands still")
	c := nodes.Start(t, binary, 3)
	alive := block("alive", "10.9.0.1", 2000, 50, brief)
	c.Nodes()[0].MustRegister(alive...)
	lives := keepAlive(c, alive)
	leader := c.Leader()
	rest := c.Others(leader)

	leader.Signal(syscall.SIGSTOP)
	outage := c.Within(10*time.Second, "write while the leader stands still", func() bool {
		a, err := rest[0].Register(nodes.Instance{Service: "probe", IP: "10.8.0.1", Port: 1})
		return err == nil && a.OK()
	})
	pass(either(brief.Delete+4*time.Second, 40*time.Second) - outage)
	leader.Signal(syscall.SIGCONT)
	pass(either(brief.Delete+time.Second, 20*time.Second))

	row.Rounds, row.FalseEvictions = 1, nobodyDied(t, lives)
	row.Outage(outage)
	if outage > 5*time.Second {
		t.Errorf("writes were back after %s, want 5 s at most", outage)
	}
	t.Logf("outage %s", outage)
}

func TestLoneNodePaused_ThePauseMakesNobodyOlder(t *testing.T) {
	c := nodes.Start(t, binary, 1)
	n := c.Nodes()[0]
	alive := block("alive", "10.9.0.1", 2000, 20, brief)
	n.MustRegister(alive...)
	stopBeats := c.KeepBeating(alive...)
	defer stopBeats()
	n.Signal(syscall.SIGSTOP)
	pass(brief.Delete + 2*time.Second) // nobody can beat meanwhile
	n.Signal(syscall.SIGCONT)
	notes := c.Watch("alive", len(alive))
	pass(brief.Timeout)
	if seen := notes(); len(seen) > 0 {
		t.Errorf("%d false sights, the first: %s", len(seen), seen[0])
	}
}
