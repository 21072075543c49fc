package raftnode

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/hashicorp/raft"

	"github.com/rollcall-io/rollcall/internal/wire/peerpb"
	"github.com/rollcall-io/rollcall/registry"
)

// topicTerm asks a node for its term; the answer is the term, big-endian, and the id of
// the server that has it.
const topicTerm = "term"

// confirm proves that no other leader was elected before the call began: a majority of
// the voters, asked since, is still in this node's term, and whoever elects another leader
// leaves it before (Raft, section 6.4 of the dissertation, with terms in place of heartbeats).
//
// Raft's own VerifyLeader does not prove it: it takes the answer to a heartbeat or an
// append that was sent before for one to the check. After a pause of the process such
// answers lie ready, from the time before others were elected.
func (n *Node) confirm(ctx context.Context, r *raft.Raft, term uint64) error {
	ctx, cancel := context.WithTimeout(ctx, n.opts.ElectionTimeout)
	defer cancel()
	voters, others := 0, 0
	terms := make(chan uint64)
	for _, s := range n.servers() {
		if s.Suffrage != raft.Voter {
			continue
		}
		if voters++; s.ID == n.serverID() {
			continue
		}
		others++
		go func() { terms <- n.termOf(ctx, s) }()
	}
	agreed := 1 // this node, looked at last
	for range others {
		if <-terms == term {
			agreed++
		}
		if 2*agreed > voters {
			cancel() // the rest is not waited for by its answers, only for its end
		}
	}
	if 2*agreed <= voters {
		return registry.ErrNotLeader.Because(fmt.Sprintf("leadership check: %d of %d voters confirm it", agreed, voters))
	}
	if r.State() != raft.Leader || r.CurrentTerm() != term {
		return registry.ErrNotLeader.Because("leadership check: another term")
	}
	return nil
}

// termOf asks another voter for its term, 0 when it does not answer or is another one.
func (n *Node) termOf(ctx context.Context, s raft.Server) uint64 {
	client, err := n.peers.connected(ctx, string(s.Address))
	if err != nil {
		return 0
	}
	resp, err := client.Ask(ctx, &peerpb.AskRequest{Topic: topicTerm})
	if err != nil || len(resp.Answer) < 8 || string(resp.Answer[8:]) != string(s.ID) {
		return 0
	}
	return binary.BigEndian.Uint64(resp.Answer)
}

// answerTerm is the answer to topicTerm; nil before Raft runs. A vote for another term is
// given only after the term is this node's.
func (n *Node) answerTerm() []byte {
	r := n.raft.Load()
	if r == nil {
		return nil
	}
	return append(binary.BigEndian.AppendUint64(nil, r.CurrentTerm()), n.serverID()...)
}
