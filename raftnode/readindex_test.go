package raftnode

import (
	"context"
	"errors"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/rollcall-io/rollcall/internal/wire/peerpb"
	"github.com/rollcall-io/rollcall/registry"
)

// TestReadIndex_LeadershipOfALaterTermProvesNothing: a node that lost its leadership and
// won it again before it dealt with the loss passes Raft's check, but what it read in the
// old term may lack what another leader wrote in between.
func TestReadIndex_LeadershipOfALaterTermProvesNothing(t *testing.T) {
	n := startCluster(t, 1, nil).nodes[0]
	term := n.proposer.term.Load()
	if got, err := n.verify(context.Background()); err != nil || got != term {
		t.Fatalf("in its own term: %d, %v", got, err)
	}
	n.proposer.term.Store(term - 1)
	defer n.proposer.term.Store(term)
	if _, err := n.verify(context.Background()); !errors.Is(err, registry.ErrNotLeader) {
		t.Errorf("in a later one: %v", err)
	}
	if _, err := n.readIndexHere(context.Background()); !errors.Is(err, registry.ErrNotLeader) {
		t.Errorf("read index: %v", err)
	}
}

// TestReadIndex_AnAnswerWithoutIndexIsNone: a call that was taken for another on a stream
// with a hole came back with the other's answer, which decodes as one without an index.
func TestReadIndex_AnAnswerWithoutIndexIsNone(t *testing.T) {
	other, err := proto.Marshal(&peerpb.ProposeResponse{Index: []uint64{317}, Changed: []uint32{1}})
	if err != nil {
		t.Fatal(err)
	}
	var taken peerpb.ReadIndexResponse
	if err := proto.Unmarshal(other, &taken); err != nil {
		t.Fatal(err)
	}
	for _, resp := range []*peerpb.ReadIndexResponse{&taken, {}} {
		if index, err := indexIn(resp); err == nil {
			t.Errorf("answer %v: index %d", resp, index)
		}
	}
	if index, err := indexIn(&peerpb.ReadIndexResponse{Index: 7}); index != 7 || err != nil {
		t.Errorf("index %d, %v", index, err)
	}
	if _, err := indexIn(&peerpb.ReadIndexResponse{NotLeader: true, Index: 7}); !errors.Is(err, registry.ErrNotLeader) {
		t.Errorf("of one that does not lead: %v", err)
	}
}

// TestVerifyLeader_OfALeaderThatOthersHaveLeft: Raft's own check takes the answer to a
// heartbeat sent before it for one to it, and so proved, after a pause, a leadership that
// had ended. What counts is that a majority is in the leader's term since the check began.
func TestVerifyLeader_OfALeaderThatOthersHaveLeft(t *testing.T) {
	c := startCluster(t, 3, nil)
	n := c.nodes[c.leader()]
	r, term := n.raft.Load(), n.proposer.openTerm()
	if err := n.confirm(context.Background(), r, term); err != nil {
		t.Fatalf("of the leader: %v", err)
	}
	if err := n.confirm(context.Background(), r, term-1); !errors.Is(err, registry.ErrNotLeader) {
		t.Errorf("in a term that the others have left: %v", err)
	}
	for i, other := range c.nodes {
		if other != n {
			c.stop(i)
		}
	}
	if err := n.confirm(context.Background(), r, term); !errors.Is(err, registry.ErrNotLeader) {
		t.Errorf("with nobody there: %v", err)
	}
}
