package raftnode

import (
	"context"
	"testing"
	"time"

	"github.com/hashicorp/raft"
)

// toldRaft plays the Raft that news hands calls to.
type toldRaft struct {
	t  *testing.T
	in chan raft.RPC
	n  *news
}

func newToldRaft(t *testing.T) *toldRaft {
	f := &toldRaft{t: t, in: make(chan raft.RPC)}
	f.n = newNews(f.in, func(e entryID) *raft.AppendEntriesRequest {
		return &raft.AppendEntriesRequest{Term: e.term, PrevLogEntry: e.index, PrevLogTerm: e.term, LeaderCommitIndex: e.index}
	})
	t.Cleanup(f.n.close)
	return f
}

// arrive lets an append of one entry come from the leader.
func (f *toldRaft) arrive(e entryID) {
	f.t.Helper()
	rpc := raft.RPC{Command: &raft.AppendEntriesRequest{Term: e.term, Entries: []*raft.Log{{Index: e.index, Term: e.term}}}}
	select {
	case f.in <- rpc:
	case <-time.After(10 * time.Second):
		f.t.Fatal("what arrives is not taken")
	}
}

// next is what Raft takes next: an entry, or the news of one.
func (f *toldRaft) next() (e entryID, isNews bool) {
	f.t.Helper()
	select {
	case rpc := <-f.n.out:
		req := rpc.Command.(*raft.AppendEntriesRequest)
		if len(req.Entries) > 0 {
			return entryID{req.Entries[0].Index, req.Entries[0].Term}, false
		}
		return entryID{req.LeaderCommitIndex, req.Term}, true
	case <-time.After(10 * time.Second):
		f.t.Fatal("nothing is handed on")
	}
	return entryID{}, false
}

func (f *toldRaft) wantNext(e entryID, isNews bool) {
	f.t.Helper()
	if got, news := f.next(); got != e || news != isNews {
		f.t.Fatalf("handed on %v, news %v; want %v, %v", got, news, e, isNews)
	}
}

func TestNews_FollowTheEntryTheyTellOf(t *testing.T) {
	f := newToldRaft(t)
	f.n.tell(entryID{8, 2}) // the answer was faster than the append
	f.arrive(entryID{7, 2})
	f.wantNext(entryID{7, 2}, false)
	f.arrive(entryID{8, 2})
	f.wantNext(entryID{8, 2}, false)
	f.wantNext(entryID{8, 2}, true)
	f.arrive(entryID{9, 2})
	f.wantNext(entryID{9, 2}, false)
	f.n.tell(entryID{9, 2}) // the append was faster
	f.wantNext(entryID{9, 2}, true)
}

func TestNews_AreToldOnceAndTheNewestOnly(t *testing.T) {
	f := newToldRaft(t)
	f.arrive(entryID{9, 3})
	for _, e := range []entryID{{7, 3}, {9, 3}, {8, 3}, {99, 2}} {
		f.n.tell(e) // Raft takes nothing meanwhile
	}
	f.wantNext(entryID{9, 3}, false)
	f.wantNext(entryID{9, 3}, true)
	f.arrive(entryID{10, 3})
	f.wantNext(entryID{10, 3}, false)
	f.arrive(entryID{11, 3})
	f.wantNext(entryID{11, 3}, false)
}

func TestNews_OfALaterTermWaitForItsEntries(t *testing.T) {
	f := newToldRaft(t)
	f.arrive(entryID{9, 3})
	f.wantNext(entryID{9, 3}, false)
	f.n.tell(entryID{6, 4}) // our 9 of term 3 are to be replaced
	f.arrive(entryID{5, 3})
	f.wantNext(entryID{5, 3}, false)
	f.arrive(entryID{6, 4})
	f.wantNext(entryID{6, 4}, false)
	f.wantNext(entryID{6, 4}, true)
}

func TestNews_EndWhileRaftTakesNothing(t *testing.T) {
	f := newToldRaft(t)
	f.arrive(entryID{9, 3})
	f.n.close()
	f.n.close()
}

// TestForwardedWrite_DoesNotWaitForTheNextAppend lets Raft tell followers of a commit so
// late that a client of a follower would hear nothing within its time.
func TestForwardedWrite_DoesNotWaitForTheNextAppend(t *testing.T) {
	c := startCluster(t, 3, func(_ int, o *Options) {
		o.ElectionTimeout, o.CommitTimeout, o.WriteTimeout = 3*time.Second, 1500*time.Millisecond, 1400*time.Millisecond
	})
	follower := c.nodes[c.follower()]
	for i := range 3 {
		result, err := follower.Propose(context.Background(), instance(i))
		if err != nil {
			t.Fatalf("write %d: %v", i, err)
		}
		if got := follower.fsm.Applied(); got < result.Index {
			t.Errorf("answered with index %d, applied here up to %d", result.Index, got)
		}
	}
}

// TestNews_OfAnEntryThatThisLogDoesNotHaveChangeNothing tells a follower of entries that
// are not in its log under that name: Raft refuses, commits nothing and follows on.
func TestNews_OfAnEntryThatThisLogDoesNotHaveChangeNothing(t *testing.T) {
	c := startCluster(t, 3, nil)
	follower := c.nodes[c.follower()]
	if _, err := follower.Propose(context.Background(), instance(0)); err != nil {
		t.Fatal(err)
	}
	r := follower.raft.Load()
	last, term := r.LastIndex(), r.CurrentTerm()
	for _, req := range []*raft.AppendEntriesRequest{
		{Term: term, PrevLogEntry: last + 5, PrevLogTerm: term, LeaderCommitIndex: last + 5},
		{Term: term, PrevLogEntry: last, PrevLogTerm: term - 1, LeaderCommitIndex: last + 5},
		{Term: term - 1, PrevLogEntry: last, PrevLogTerm: term - 1, LeaderCommitIndex: last + 5},
	} {
		address, id := r.LeaderWithID()
		req.RPCHeader = raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax, ID: []byte(id), Addr: []byte(address)}
		answer := make(chan raft.RPCResponse, 1)
		follower.transport.news.hand(raft.RPC{Command: req, RespChan: answer})
		if resp := (<-answer).Response.(*raft.AppendEntriesResponse); resp.Success {
			t.Errorf("%+v is taken", req)
		}
	}
	if got := r.CommitIndex(); got > last {
		t.Errorf("commit index %d, the log ended at %d", got, last)
	}
	if _, err := follower.Propose(context.Background(), instance(1)); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}
