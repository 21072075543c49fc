package raftnode

import (
	"sync"

	"github.com/hashicorp/raft"
)

// entryID names one entry of the log for good: two entries of one index and term are the
// same (log matching, Raft section 5.3). The zero value names none.
type entryID struct{ index, term uint64 }

// news hands Raft what arrives for it, and lets a follower know at once that an entry is
// committed when the leader has said so in answer to a call.
//
// Raft tells a follower of a commit with the append that comes next. A client that waits
// on the follower for its own write would so wait for the writes of others, or on an idle
// cluster for CommitTimeout. What the leader's answer says is what such an append says:
// it is handed to Raft as one without entries, right behind the entry that it tells of.
//
// An entry named by index and term is the only one of that name, and committed is
// committed: a leader that has been replaced meanwhile was right too. Raft itself refuses
// what is of an older term than its own, and what it has no such entry for.
type news struct {
	in  <-chan raft.RPC
	out chan raft.RPC
	// request makes the append that tells of an entry; nil when there is no use for it.
	request func(entryID) *raft.AppendEntriesRequest

	wake  chan struct{}
	stop  chan struct{}
	ended chan struct{}
	once  sync.Once

	passed entryID // the last entry handed to Raft; only run uses it

	mu   sync.Mutex
	told entryID // the newest that is committed and was not handed on
}

// newNews starts the goroutine that hands on; close ends it.
func newNews(in <-chan raft.RPC, request func(entryID) *raft.AppendEntriesRequest) *news {
	n := &news{
		in: in, out: make(chan raft.RPC), request: request,
		wake: make(chan struct{}, 1), stop: make(chan struct{}), ended: make(chan struct{}),
	}
	go n.run()
	return n
}

// close ends the handing on and waits for that. What comes in is not taken any more.
func (n *news) close() {
	n.once.Do(func() { close(n.stop) })
	<-n.ended
}

// tell notes that an entry is committed. It does not block.
func (n *news) tell(e entryID) {
	n.mu.Lock()
	newer := e.term > n.told.term || e.term == n.told.term && e.index > n.told.index
	if newer {
		n.told = e
	}
	n.mu.Unlock()
	if newer {
		select {
		case n.wake <- struct{}{}:
		default:
		}
	}
}

func (n *news) run() {
	defer close(n.ended)
	for {
		select {
		case rpc := <-n.in:
			if !n.hand(rpc) {
				return
			}
			n.note(rpc)
		case <-n.wake:
		case <-n.stop:
			return
		}
		if req := n.due(); req != nil && !n.hand(raft.RPC{Command: req, RespChan: make(chan raft.RPCResponse, 1)}) {
			return
		}
	}
}

// hand waits until Raft takes a call; false when it is to take no more.
func (n *news) hand(rpc raft.RPC) bool {
	select {
	case n.out <- rpc:
		return true
	case <-n.stop:
		return false
	}
}

func (n *news) note(rpc raft.RPC) {
	if req, is := rpc.Command.(*raft.AppendEntriesRequest); is && len(req.Entries) > 0 {
		last := req.Entries[len(req.Entries)-1]
		n.passed = entryID{last.Index, last.Term}
	}
}

// due is the append that tells of the newest commit. An entry that has not come yet is
// told of when it has: Raft takes one call after the other, so whatever has been handed
// on before is in the log by then.
func (n *news) due() *raft.AppendEntriesRequest {
	n.mu.Lock()
	e := n.told
	if e == (entryID{}) || e.term == n.passed.term && e.index > n.passed.index || e.term > n.passed.term {
		n.mu.Unlock()
		return nil
	}
	n.told = entryID{}
	n.mu.Unlock()
	return n.request(e)
}

// appendTelling makes the append that tells this follower's Raft of a committed entry; nil
// when it knows that already, leads, or is in another term.
func (n *Node) appendTelling(e entryID) *raft.AppendEntriesRequest {
	r := n.raft.Load()
	if r == nil || r.CommitIndex() >= e.index || r.CurrentTerm() != e.term {
		return nil
	}
	address, id := r.LeaderWithID()
	if id == "" || id == n.serverID() {
		return nil
	}
	return &raft.AppendEntriesRequest{
		RPCHeader: raft.RPCHeader{
			ProtocolVersion: raft.ProtocolVersionMax, ID: []byte(id), Addr: n.transport.EncodePeer(id, address),
		},
		Term:         e.term,
		PrevLogEntry: e.index, PrevLogTerm: e.term,
		LeaderCommitIndex: e.index,
	}
}
