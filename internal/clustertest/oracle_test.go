package clustertest

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/rollcall-io/rollcall/test/faults/figures"
)

// oracleLag is how long a flip back may be on its way.
const oracleLag = 3 * time.Second

// pace is how an instance beats, and when it is unhealthy and gone. Both kinds are needed:
// a beat every half second renews a lease before a new leader has looked at it once.
type pace struct{ beat, down, gone time.Duration }

var (
	quick = pace{500 * time.Millisecond, 4 * time.Second, 7 * time.Second}
	slow  = pace{3 * time.Second, 8 * time.Second, 12 * time.Second}
)

func (p pace) params() string {
	return fmt.Sprintf("metadata=%%7B%%22preserved.heart.beat.interval%%22%%3A%%22%d%%22%%2C%%22preserved.heart.beat.timeout%%22%%3A%%22%d%%22%%2C%%22preserved.ip.delete.timeout%%22%%3A%%22%d%%22%%7D",
		p.beat.Milliseconds(), p.down.Milliseconds(), p.gone.Milliseconds())
}

// beater is a client that beats one instance and remembers which beats were acknowledged:
// only those count as proof that it lives.
type beater struct {
	pace
	port int

	mu        sync.Mutex
	sent      time.Time // when the newest acknowledged beat was sent
	suspectAt time.Time // when a row of acknowledged beats last had a gap
	acked     int
}

// ack notes an acknowledged beat. Between two of them more than the timeout may have
// passed: then the registry may have called it unhealthy, and rightly.
func (b *beater) ack(sent, done time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if done.Sub(b.sent) > b.down {
		b.suspectAt = done
	}
	b.sent = sent
	b.acked++
}

// mustBeHealthy tells whether every right answer to a question that was asked and answered
// at these times shows the instance healthy.
func (b *beater) mustBeHealthy(asked, answered time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return answered.Sub(b.sent) <= b.down && asked.Sub(b.suspectAt) > oracleLag
}

// silence is the time since the newest acknowledged beat was sent.
func (b *beater) silence(now time.Time) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	return now.Sub(b.sent)
}

func (b *beater) run(ctx context.Context, c *Cluster, service string) {
	tick := time.NewTicker(b.beat)
	defer tick.Stop()
	for i := b.port; ctx.Err() == nil; i++ {
		for k := range c.nodes {
			sent := time.Now()
			if a, err := c.nodes[(i+k)%len(c.nodes)].Beat(service, "10.0.0.1", b.port); err == nil && a.Status == http.StatusOK {
				b.ack(sent, time.Now())
				break
			}
		}
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
}

// oracle judges what nodes list by the beats that clients know to be acknowledged.
type oracle struct {
	living map[int]*beater

	mu     sync.Mutex
	judged int
	wrong  []string
	dead   map[string]int // those of the dead that each node listed last
}

// watch looks at a service on a node until ctx ends.
func (o *oracle) watch(ctx context.Context, m *Member, service string) {
	listed := map[int]bool{} // the registration may be on its way to this node still
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for ctx.Err() == nil {
		asked := time.Now()
		hosts, err := m.List(service)
		answered := time.Now()
		if err == nil {
			o.judge(m, hosts, listed, asked, answered)
		}
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
}

func (o *oracle) judge(m *Member, hosts []Host, listed map[int]bool, asked, answered time.Time) {
	healthy := map[int]bool{}
	dead := 0
	for _, h := range hosts {
		if o.living[h.Port] == nil {
			dead++
			continue
		}
		healthy[h.Port], listed[h.Port] = h.Healthy, true
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.dead[m.ID] = dead
	for port, b := range o.living {
		if !listed[port] || !b.mustBeHealthy(asked, answered) {
			continue
		}
		o.judged++
		if up, found := healthy[port]; !up {
			o.wrong = append(o.wrong, fmt.Sprintf("%s: %d listed %v, healthy %v, though its beat of %s ago was acknowledged",
				m.ID, port, found, up, b.silence(answered)))
		}
	}
}

// immortals are the dead that are listed on the node that lists most of them.
func (o *oracle) immortals() (most int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, n := range o.dead {
		most = max(most, n)
	}
	return most
}

// TestCluster_ElectionsEvictNobodyWhoBeatsAndKeepNobodyWhoDoesNot cuts off one leader
// after another. Who had an acknowledged beat inside his timeout must be shown healthy by
// every node; who has none is gone within eight seconds more than his timeout.
func TestCluster_ElectionsEvictNobodyWhoBeatsAndKeepNobodyWhoDoesNot(t *testing.T) {
	row := figures.Track(t, "elections, beats as the oracle")
	c := Start(t, 3, nil)
	waves := 1
	if longForm() {
		waves = 10
	}
	for wave := range waves {
		service := fmt.Sprintf("wave-%d", wave)
		o := &oracle{living: map[int]*beater{}, dead: map[string]int{}}
		ctx, cancel := context.WithCancel(context.Background())
		var all sync.WaitGroup
		for i := range 40 {
			b := &beater{pace: []pace{quick, slow}[i%2], port: 1000 + i, sent: time.Now()}
			c.Leader().MustRegister(service, "10.0.0.1", b.port, b.params())
			o.living[b.port] = b
			all.Go(func() { b.run(ctx, c, service) })
		}
		for i := range 20 {
			c.Leader().MustRegister(service, "10.0.0.1", 3000+i, quick.params())
		}
		died := time.Now()
		for _, m := range c.Members() {
			all.Go(func() { o.watch(ctx, m, service) })
		}
		cut, leaderless := 0, time.Duration(0) // what elections take longer than a round is not the leaders' time
		for ; time.Since(died) < quick.gone+8*time.Second+leaderless; cut++ {
			asked := time.Now()
			leader := c.Leader()
			leaderless += time.Since(asked)
			c.Isolate(leader, []Fault{{Drop: true}, {Reset: true}}[cut%2])
			<-time.After(1300 * time.Millisecond)
			c.Heal()
			<-time.After(3200 * time.Millisecond)
		}
		immortal := o.immortals()
		cancel()
		all.Wait()
		row.Rounds += cut
		o.report(t, row, immortal)
	}
}

func (o *oracle) report(t *testing.T, row *figures.Row, immortal int) {
	t.Helper()
	acked := 0
	for _, b := range o.living {
		acked += b.acked
	}
	row.Operations = max(row.Operations, 0) + acked
	row.FalseEvictions = max(row.FalseEvictions, 0) + len(o.wrong)
	row.Immortals = max(row.Immortals, 0) + immortal
	if len(o.wrong) > 0 {
		t.Errorf("%d false sights, the first: %s", len(o.wrong), o.wrong[0])
	}
	if immortal > 0 {
		t.Errorf("%d that never beat are listed after %s", immortal, quick.gone+8*time.Second)
	}
	if o.judged < 1000 {
		t.Errorf("only %d sights could be judged", o.judged)
	}
	t.Logf("%d acknowledged beats, %d sights judged", acked, o.judged)
}
