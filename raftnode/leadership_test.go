package raftnode

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/rollcall-io/rollcall/registry"
)

// jobLog records the jobs of terms and fails when two run at once.
type jobLog struct {
	mu      sync.Mutex
	running int
	most    int
	terms   []uint64
}

func (j *jobLog) run(ctx context.Context, term uint64) {
	j.mu.Lock()
	j.running++
	j.most = max(j.most, j.running)
	j.terms = append(j.terms, term)
	j.mu.Unlock()
	<-ctx.Done()
	j.mu.Lock()
	j.running--
	j.mu.Unlock()
}

func TestLeadership_OneJobForEachTermEverywhere(t *testing.T) {
	var jobs jobLog
	c := startCluster(t, 3, func(_ int, o *Options) { o.LeaderJobs = []LeaderJob{jobs.run} })
	for range 3 {
		l := c.nodes[c.leader()]
		_, term, _ := l.Leader()
		if err := l.transfer(context.Background()); err != nil {
			t.Fatal(err)
		}
		eventually(t, 15*time.Second, "another term", func() error {
			if _, now, _ := c.nodes[c.leader()].Leader(); now == term {
				return errors.New("same term")
			}
			return nil
		})
	}
	c.close()
	jobs.mu.Lock()
	defer jobs.mu.Unlock()
	if jobs.running != 0 || len(jobs.terms) < 4 {
		t.Fatalf("%d jobs still run, terms %v", jobs.running, jobs.terms)
	}
	for i := 1; i < len(jobs.terms); i++ {
		if jobs.terms[i] <= jobs.terms[i-1] {
			t.Fatalf("terms of the jobs: %v", jobs.terms)
		}
	}
}

func TestLeadership_ProposeAsLeaderOnlyInItsTerm(t *testing.T) {
	c := startCluster(t, 3, nil)
	l := c.leader()
	_, term, _ := c.nodes[l].Leader()
	if _, err := c.nodes[l].ProposeAsLeader(context.Background(), term, registry.NoOp{}); err != nil {
		t.Fatal(err)
	}
	for _, wrong := range []uint64{term - 1, term + 1} {
		if _, err := c.nodes[l].ProposeAsLeader(context.Background(), wrong, registry.NoOp{}); !errors.Is(err, registry.ErrNotLeader) {
			t.Errorf("term %d of %d: %v", wrong, term, err)
		}
	}
	if _, err := c.nodes[(l+1)%3].ProposeAsLeader(context.Background(), term, registry.NoOp{}); !errors.Is(err, registry.ErrNotLeader) {
		t.Errorf("on a follower: %v", err)
	}
}

func TestLeadership_PrepareStopMovesItAndStillForwards(t *testing.T) {
	var jobs jobLog
	c := startCluster(t, 3, func(_ int, o *Options) { o.LeaderJobs = []LeaderJob{jobs.run} })
	l := c.leader()
	if err := c.nodes[l].PrepareStop(context.Background()); err != nil {
		t.Fatal(err)
	}
	if err := c.nodes[l].Ready(); !errors.Is(err, registry.ErrShuttingDown) {
		t.Errorf("ready: %v", err)
	}
	if _, err := c.nodes[l].Propose(context.Background(), instance(1)); err != nil {
		t.Errorf("write while draining: %v", err)
	}
	if now := c.leader(); now == l {
		t.Error("it still leads")
	}
}

func TestLeadership_IsolatedLeaderSaysUncertainThenHolds(t *testing.T) {
	c := startCluster(t, 3, func(_ int, o *Options) { o.WriteTimeout = 2 * time.Second })
	l := c.leader()
	old := c.nodes[l]
	c.cutOff(l, true)
	if _, err := old.Propose(context.Background(), instance(1)); !errors.Is(err, registry.ErrUncertain) && !errors.Is(err, registry.ErrNoLeader) {
		t.Fatalf("write on a leader alone: %v", err)
	}
	other := c.nodes[(l+1)%3]
	eventually(t, 20*time.Second, "write on the other side", func() error {
		_, err := other.Propose(context.Background(), instance(2))
		return err
	})
	c.cutOff(l, false)
	eventually(t, 15*time.Second, "the old leader catches up", func() error {
		if old.fsm.times(instance(2)) == 0 { // of an uncertain outcome it is written again
			return errors.New("missing")
		}
		return nil
	})
	if got := old.fsm.times(instance(1)); got > 1 {
		t.Fatalf("an uncertain write was applied %d times", got)
	}
}

func TestReadIndex_EveryNodeSeesEarlierWrites(t *testing.T) {
	c := startCluster(t, 3, nil)
	for i := range 10 {
		writer, reader := c.nodes[i%3], c.nodes[(i+1)%3]
		if _, err := writer.Propose(context.Background(), instance(i)); err != nil {
			t.Fatal(err)
		}
		index, err := reader.ReadIndex(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		if err := reader.fsm.WaitApplied(context.Background(), index); err != nil {
			t.Fatal(err)
		}
		if reader.fsm.times(instance(i)) != 1 {
			t.Fatalf("write %d is missing at index %d", i, index)
		}
	}
}

func TestVerifyLeader_IsSharedAndRefusedOnFollowers(t *testing.T) {
	c := startCluster(t, 3, nil)
	l := c.leader()
	if err := c.nodes[(l+1)%3].VerifyLeader(context.Background()); !errors.Is(err, registry.ErrNotLeader) {
		t.Errorf("on a follower: %v", err)
	}
	var group sync.WaitGroup
	for range 100 {
		group.Go(func() {
			if err := c.nodes[l].VerifyLeader(context.Background()); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
}

func TestBeats_ReachTheLeaderFromEveryNode(t *testing.T) {
	answer := registry.BeatAnswer{
		Leases: []registry.Verdict{registry.BeatRenewed, registry.BeatStale}, Keys: []registry.Verdict{registry.BeatUnknown},
		HasSilent: true, Silent: []registry.SilentLease{{LeaseRef: registry.LeaseRef{Number: 3}, Age: 9000}},
	}
	var mu sync.Mutex
	var got []registry.BeatBatch
	c := startCluster(t, 3, func(_ int, o *Options) {
		o.OnBeats = func(_ context.Context, b registry.BeatBatch) (registry.BeatAnswer, error) {
			mu.Lock()
			got = append(got, b)
			mu.Unlock()
			return answer, nil
		}
	})
	key, _ := registry.KeyOf(instance(1))
	for _, n := range c.nodes {
		batch := registry.BeatBatch{
			Node: n.opts.NodeID, Applied: 7, Keys: []registry.InstanceKey{key},
			Leases: []registry.LeaseRef{{Number: 1, Grant: registry.Position{Index: 5, Seq: 2}}, {Number: 2}},
		}
		var back registry.BeatAnswer
		eventually(t, 15*time.Second, "answer", func() (err error) {
			back, err = n.SendBeats(context.Background(), batch)
			return err
		})
		if fmt.Sprint(back) != fmt.Sprint(answer) {
			t.Errorf("%s: answer %+v", n.opts.NodeID, back)
		}
		mu.Lock()
		if last := got[len(got)-1]; fmt.Sprint(last) != fmt.Sprint(batch) {
			t.Errorf("%s: leader got %+v", n.opts.NodeID, last)
		}
		mu.Unlock()
	}
}

// With the leader's process gone, every client that beat waited a second for the
// connection to come back.
func TestBeats_FailAtOnceWhenTheLeaderCannotBeReached(t *testing.T) {
	c := startCluster(t, 3, func(_ int, o *Options) {
		o.OnBeats = func(context.Context, registry.BeatBatch) (registry.BeatAnswer, error) {
			return registry.BeatAnswer{}, nil
		}
	})
	f, l := c.follower(), c.leader()
	send := func() (time.Duration, error) {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		start := time.Now()
		_, err := c.nodes[f].SendBeats(ctx, registry.BeatBatch{})
		return time.Since(start), err
	}
	eventually(t, 15*time.Second, "answer", func() error { _, err := send(); return err })
	// One direction only: the leader goes on leading.
	from, to := c.nodes[f].opts.PeerAddr, c.nodes[l].opts.PeerAddr
	c.links.set(from, to, true)
	slow := 0 // a pause of the machine may make one slow
	for range 5 {
		took, err := send()
		if err == nil {
			t.Fatal("sent to a leader behind a cut link")
		}
		if took > 900*time.Millisecond {
			slow++
		}
	}
	if slow > 2 {
		t.Errorf("%d of 5 calls to a leader behind a cut link did not fail at once", slow)
	}
	c.links.set(from, to, false)
	eventually(t, 15*time.Second, "answer again", func() error { _, err := send(); return err })
}
