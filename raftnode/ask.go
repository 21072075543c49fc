package raftnode

import (
	"context"
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/rollcall-io/rollcall/internal/wire/peerpb"
)

// Ask answers a question of another node from what this node alone knows.
func (s *server) Ask(ctx context.Context, req *peerpb.AskRequest) (*peerpb.AskResponse, error) {
	if req.Topic == topicTerm {
		return &peerpb.AskResponse{Answer: s.node.answerTerm()}, nil
	}
	answer := s.node.opts.OnAsk[req.Topic]
	if answer == nil {
		return nil, status.Errorf(codes.Unimplemented, "topic %q is not known here", req.Topic)
	}
	text, err := answer(ctx, req.Question)
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	return &peerpb.AskResponse{Answer: text}, nil
}

// AskOthers puts a question to all other members at once and returns the answers by node
// id, when all have answered or ctx ends. A member that did not answer is missing: it is
// down, or of a version that does not know the topic. Questions must be safe to repeat.
func (n *Node) AskOthers(ctx context.Context, topic string, question []byte) map[string][]byte {
	var (
		group   sync.WaitGroup
		mu      sync.Mutex
		answers = make(map[string][]byte)
	)
	for _, s := range n.servers() {
		if s.ID == n.serverID() {
			continue
		}
		group.Go(func() {
			client, err := n.peers.client(string(s.Address))
			if err != nil {
				return
			}
			resp, err := client.Ask(ctx, &peerpb.AskRequest{Topic: topic, Question: question})
			if err != nil {
				n.log.Debug("question to a peer", "topic", topic, "peer", nodeOf(s.ID), "err", err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			answers[nodeOf(s.ID)] = resp.Answer
		})
	}
	group.Wait()
	return answers
}
