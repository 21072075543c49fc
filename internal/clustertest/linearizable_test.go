package clustertest

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/rollcall-io/rollcall/test/faults/figures"
)

// The history of one instance: registered with a value, deregistered, read. The state is
// its value, 0 while it is not there.
type instanceInput struct {
	op    byte // 'r'egister, 'd'eregister, 'g'et
	value int
}

var instanceModel = porcupine.Model{
	Init: func() any { return 0 },
	Step: func(state, input, output any) (bool, any) {
		switch in := input.(instanceInput); in.op {
		case 'r':
			return true, in.value
		case 'd':
			return true, 0
		}
		return output == state, state
	},
	DescribeOperation: func(input, output any) string {
		in := input.(instanceInput)
		return fmt.Sprintf("%c %d: %v", in.op, in.value, output)
	},
}

// history collects the operations of several clients, by instance.
type history struct {
	t     *testing.T
	began time.Time

	mu      sync.Mutex
	ops     map[string][]porcupine.Operation
	told    map[string][]told
	value   int
	unknown int
}

// told is all that a node said of an operation, refused ones included, for who must find
// out how a history came about.
type told struct {
	op     porcupine.Operation
	node   string
	answer Answer
	err    error
}

func newHistory(t *testing.T) *history {
	return &history{
		t: t, began: time.Now(), ops: make(map[string][]porcupine.Operation), told: make(map[string][]told),
	}
}

func (h *history) note(key, node string, op porcupine.Operation, a Answer, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.told[key] = append(h.told[key], told{op, node, a, err})
}

// String is a line of the history: when, what, through whom, and what came back.
func (d told) String() string {
	const us = 1000
	said := fmt.Sprint(d.err)
	if d.err == nil {
		said = fmt.Sprintf("%d, index %s, leader %s", d.answer.Status, d.answer.Header.Get("X-Rollcall-Index"), d.answer.Header.Get("X-Rollcall-Leader"))
	}
	if d.answer.Status >= http.StatusBadRequest {
		said += ": " + d.answer.Body
	}
	return fmt.Sprintf("%10d-%10d us client %d on %s %s (%s)", d.op.Call/us, d.op.Return/us, d.op.ClientId, d.node,
		instanceModel.DescribeOperation(d.op.Input, d.op.Output), said)
}

func (h *history) now() int64 { return int64(time.Since(h.began)) }

func (h *history) add(key string, op porcupine.Operation) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ops[key] = append(h.ops[key], op)
	if op.Return == math.MaxInt64 {
		h.unknown++
	}
}

// client runs operations on one node until ctx ends.
func (h *history) client(ctx context.Context, m *Member, id int, phase func() int) {
	tick := time.NewTicker(4 * time.Millisecond)
	defer tick.Stop()
	for ctx.Err() == nil {
		key := fmt.Sprintf("svc-%d-%d", phase(), rand.N(8))
		switch n := rand.N(10); {
		case n < 4:
			h.mu.Lock()
			h.value++
			value := h.value
			h.mu.Unlock()
			h.write(m, id, key, instanceInput{'r', value})
		case n < 6:
			h.write(m, id, key, instanceInput{'d', 0})
		default:
			h.read(m, id, key)
		}
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
}

// write keeps an operation whose outcome is unknown open to the end. One that was refused
// must have had no effect, so it has no place in the history.
func (h *history) write(m *Member, id int, key string, in instanceInput) {
	op := porcupine.Operation{ClientId: id, Input: in, Call: h.now()}
	var a Answer
	var err error
	if in.op == 'r' {
		metadata := fmt.Sprintf("metadata=%%7B%%22v%%22%%3A%%22%d%%22%%2C%s", in.value, strings.TrimPrefix(long, "metadata=%7B"))
		a, err = m.Register(key, "10.0.0.1", 80, metadata)
	} else {
		a, err = m.Deregister(key, "10.0.0.1", 80)
	}
	op.Return = h.now()
	h.note(key, m.ID, op, a, err)
	switch {
	case err == nil && a.Status == http.StatusOK:
	case err != nil, a.Status == http.StatusServiceUnavailable && strings.Contains(a.Body, "outcome unknown"):
		op.Return = math.MaxInt64
	case a.Status == http.StatusServiceUnavailable:
		return
	default:
		h.t.Errorf("write on %s: %d %s", m.ID, a.Status, a.Body)
		return
	}
	h.add(key, op)
}

func (h *history) read(m *Member, id int, key string) {
	op := porcupine.Operation{ClientId: id, Input: instanceInput{'g', 0}, Call: h.now()}
	a, err := m.Do(http.MethodGet, "/instance/list", "serviceName="+key+"&consistency=linearizable")
	op.Return = h.now()
	if err != nil || a.Status == http.StatusServiceUnavailable || a.Status == http.StatusGatewayTimeout {
		h.note(key, m.ID, op, a, err)
		return
	}
	var list struct{ Hosts []Host }
	if err := json.Unmarshal([]byte(a.Body), &list); a.Status != http.StatusOK || err != nil || len(list.Hosts) > 1 {
		h.t.Errorf("read on %s: %d %s: %v", m.ID, a.Status, a.Body, err)
		return
	}
	value := 0
	if len(list.Hosts) == 1 {
		if value, err = strconv.Atoi(list.Hosts[0].Metadata["v"]); err != nil {
			h.t.Errorf("read on %s: %s", m.ID, a.Body)
			return
		}
	}
	op.Output = value
	h.note(key, m.ID, op, a, nil)
	h.add(key, op)
}

// check fails the test for each instance whose history no single copy could have given.
func (h *history) check() (ops int) {
	for key, history := range h.ops {
		ops += len(history)
		if result := porcupine.CheckOperationsTimeout(instanceModel, history, 10*time.Second); result != porcupine.Ok {
			h.t.Errorf("%s: %d operations are not linearizable: %v", key, len(history), result)
			for _, d := range h.told[key] {
				h.t.Logf("%s %s", key, d)
			}
		}
	}
	return ops
}

// TestCluster_HistoriesAreLinearizable runs clients on all nodes while the leader is cut
// off, goes mute and deaf, in both directions and in one. Every answer must be one that
// a single copy could have given, with unknown outcomes open to the end.
func TestCluster_HistoriesAreLinearizable(t *testing.T) {
	row := figures.Track(t, "histories under faulty links")
	c := Start(t, 3, nil)
	h := newHistory(t)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var phases sync.Mutex
	phase := 0
	current := func() int {
		phases.Lock()
		defer phases.Unlock()
		return phase
	}
	var clients sync.WaitGroup
	for i := range 9 {
		clients.Go(func() { h.client(ctx, c.Members()[i%3], i, current) })
	}
	faults := []func(leader *Member, rest []*Member){
		func(*Member, []*Member) {},
		func(l *Member, _ []*Member) { c.Isolate(l, Fault{Drop: true}) },
		func(l *Member, _ []*Member) { c.Isolate(l, Fault{Reset: true}) },
		func(l *Member, rest []*Member) { toAll(c, l, rest, Fault{Drop: true}) },
		func(l *Member, rest []*Member) { fromAll(c, l, rest, Fault{Drop: true}) },
		func(l *Member, rest []*Member) { c.Link(l, rest[0], Fault{Drop: true}) },
		func(l *Member, rest []*Member) { c.Link(rest[0], l, Fault{Reset: true}) },
		func(_ *Member, rest []*Member) { c.Isolate(rest[0], Fault{Drop: true}) },
		func(l *Member, _ []*Member) {
			c.Isolate(l, Fault{Delay: 10 * time.Millisecond, Jitter: 30 * time.Millisecond})
		},
	}
	repeat := 1
	if longForm() {
		repeat = 12
	}
	for _, fault := range slices.Repeat(faults, repeat) {
		row.Rounds++
		leader := c.Leader()
		var rest []*Member
		for _, m := range c.Members() {
			if m != leader {
				rest = append(rest, m)
			}
		}
		fault(leader, rest)
		<-time.After(1700 * time.Millisecond)
		c.Heal()
		<-time.After(500 * time.Millisecond)
		phases.Lock()
		phase++
		phases.Unlock()
	}
	cancel()
	clients.Wait()
	ops := h.check()
	row.Operations = ops
	row.Note = fmt.Sprintf("%d of unknown outcome", h.unknown)
	t.Logf("%d operations on %d instances, %d of unknown outcome", ops, len(h.ops), h.unknown)
	if ops < 200 {
		t.Errorf("only %d operations in all", ops)
	}
}

func toAll(c *Cluster, from *Member, rest []*Member, f Fault) {
	for _, m := range rest {
		c.Link(from, m, f)
	}
}

func fromAll(c *Cluster, to *Member, rest []*Member, f Fault) {
	for _, m := range rest {
		c.Link(m, to, f)
	}
}
