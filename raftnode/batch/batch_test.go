package batch

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/rollcall-io/rollcall/internal/wire"
	"github.com/rollcall-io/rollcall/registry"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var limits = Limits{Commands: 100, Bytes: 1000, BatchCommands: 10, BatchBytes: 100}

// put queues one item of a size and returns its group.
func put(q *Queue, class Class, size int) *Group {
	g := NewGroup(1)
	g.Items[0].Encoded = make([]byte, size)
	q.Put(g, class)
	return g
}

func outcome(t *testing.T, g *Group) wire.Outcome {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	o, err := g.Wait(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return o[0]
}

func TestQueue_CutsByNumberAndBytes(t *testing.T) {
	q := NewQueue(limits, 1)
	for range 12 {
		put(q, Client, 1)
	}
	put(q, Client, 99)
	put(q, Client, 99)
	put(q, Client, 500) // larger than a batch, but it must leave some time
	for i, want := range []int{10, 2, 1, 1, 1, 0} {
		if got := len(q.take(time.Now())); i != 1 && got != want {
			t.Fatalf("batch %d has %d items, want %d", i, got, want)
		}
	}
}

func TestQueue_BackgroundGetsOneInEight(t *testing.T) {
	q := NewQueue(Limits{Commands: 1000, Bytes: 1000, BatchCommands: 1, BatchBytes: 10}, 1)
	background := make(map[*Item]bool)
	for range 3 {
		g := put(q, Background, 1)
		background[&g.Items[0]] = true
	}
	for range 100 {
		put(q, Client, 1)
	}
	var at []int
	for i := range 30 {
		if batch := q.take(time.Now()); background[batch[0]] {
			at = append(at, i)
		}
	}
	if len(at) != 3 || at[0] != 7 || at[1] != 15 || at[2] != 23 {
		t.Fatalf("background batches at %v", at)
	}
}

func TestQueue_RefusesOverItsBounds(t *testing.T) {
	q := NewQueue(limits, 1)
	for range 100 {
		put(q, Client, 1)
	}
	if o := outcome(t, put(q, Client, 1)); o.Err != registry.ErrOverloaded {
		t.Errorf("command 101: %v", o.Err)
	}
	if o := outcome(t, put(q, Background, 1001)); o.Err != registry.ErrOverloaded {
		t.Errorf("1001 bytes: %v", o.Err)
	}
	q.Close(registry.ErrNotLeader)
	if o := outcome(t, put(q, Client, 1)); o.Err != registry.ErrNotLeader {
		t.Errorf("closed: %v", o.Err)
	}
	q.Open()
	put(q, Client, 1)
	if got := q.Len(Client); got != 1 {
		t.Errorf("%d items after close and open, want 1", got)
	}
}

func TestGroup_LeavesBeforeAndAfterItWasSent(t *testing.T) {
	q := NewQueue(limits, 1)
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	before := put(q, Client, 1)
	if _, err := before.Wait(ended); !errors.Is(err, registry.ErrTimeout) {
		t.Errorf("before it was sent: %v", err)
	}
	if batch := q.take(time.Now()); len(batch) != 0 {
		t.Error("an abandoned item is sent")
	}
	after := put(q, Client, 1)
	q.take(time.Now())
	if _, err := after.Wait(ended); !errors.Is(err, registry.ErrUncertain) {
		t.Errorf("after it was sent: %v", err)
	}
}

func TestQueue_DropsWhatIsTooLate(t *testing.T) {
	q := NewQueue(limits, 1)
	g := NewGroup(1)
	g.Items[0].Deadline = time.Unix(100, 0)
	q.Put(g, Client)
	if batch := q.take(time.Unix(101, 0)); len(batch) != 0 {
		t.Fatal("a command whose time is spent is sent")
	}
	if o := outcome(t, g); o.Err == nil || o.Err.Code != registry.CodeTimeout {
		t.Fatalf("outcome %v", o.Err)
	}
}

func TestQueue_KnowsKeysUntilTheyFinish(t *testing.T) {
	q := NewQueue(limits, 1)
	key := registry.InstanceKey{IP: "10.0.0.1"}
	g := NewGroup(2)
	for i := range g.Items {
		g.Items[i].Key, g.Items[i].HasKey = key, true
	}
	q.Put(g, Client)
	batch := q.take(time.Now())
	if !q.Busy(key) {
		t.Fatal("not busy while on its way")
	}
	q.Finish(batch, func(int) wire.Outcome { return wire.Outcome{} })
	if q.Busy(key) {
		t.Fatal("busy after the end")
	}
}

func TestQueue_RunKeepsOrderAndBoundsWhatIsOnItsWay(t *testing.T) {
	const senders, items = 4, 500
	q := NewQueue(Limits{Commands: items, Bytes: items, BatchCommands: 7, BatchBytes: 1000}, senders)
	ctx, cancel := context.WithCancel(context.Background())
	var (
		mu        sync.Mutex
		seen      []byte
		now, most int
		ended     = make(chan struct{})
	)
	go func() {
		defer close(ended)
		q.Run(ctx, func(batch []*Item) func() {
			mu.Lock()
			for _, it := range batch {
				seen = append(seen, it.Encoded...)
			}
			now++
			most = max(most, now)
			mu.Unlock()
			return func() {
				mu.Lock()
				now--
				mu.Unlock()
				q.Finish(batch, func(int) wire.Outcome { return wire.Outcome{} })
			}
		})
	}()
	groups := make([]*Group, items)
	for i := range groups {
		groups[i] = NewGroup(1)
		groups[i].Items[0].Encoded = []byte{byte(i)}
		q.Put(groups[i], Client)
	}
	for _, g := range groups {
		outcome(t, g)
	}
	cancel()
	<-ended
	if most > senders {
		t.Errorf("%d batches on their way, at most %d may be", most, senders)
	}
	for i, b := range seen {
		if b != byte(i) {
			t.Fatalf("item %d was sent in place of %d", b, i)
		}
	}
}
