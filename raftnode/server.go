package raftnode

import (
	"context"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"

	"github.com/rollcall-io/rollcall/internal/wire"
	"github.com/rollcall-io/rollcall/internal/wire/peerpb"
	"github.com/rollcall-io/rollcall/registry"
)

// server answers the calls of other nodes.
type server struct {
	peerpb.UnimplementedPeerServer

	node *Node
}

func newServer(n *Node) *grpc.Server {
	s := grpc.NewServer(
		grpc.MaxRecvMsgSize(maxMessage),
		grpc.MaxHeaderListSize(16<<10),
		grpc.ConnectionTimeout(5*time.Second), // to the first frame
		grpc.MaxConcurrentStreams(256),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 5 * time.Second}),
	)
	peerpb.RegisterPeerServer(s, &server{node: n})
	return s
}

// Propose proposes a batch of another node's commands. It never forwards.
func (s *server) Propose(ctx context.Context, req *peerpb.ProposeRequest) (*peerpb.ProposeResponse, error) {
	n := s.node
	commands, err := decodeBatch(req, time.Now())
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	if !n.awaitOpen(ctx) {
		return &peerpb.ProposeResponse{NotLeader: true, Leader: n.hint()}, nil
	}
	outcomes, err := n.proposeHere(ctx, commands)
	if err != nil {
		fault := asError(err)
		outcomes = make([]wire.Outcome, len(commands))
		for i := range outcomes {
			outcomes[i].Err = fault
		}
	}
	resp := wire.EncodeOutcomes(outcomes)
	if refusedAll(outcomes) {
		resp.NotLeader, resp.Leader = true, n.hint()
	}
	return resp, nil
}

// decodeBatch takes a request apart. The commands are decoded here, before they are
// proposed: one that cannot be read would stop every node once it is in the log.
func decodeBatch(req *peerpb.ProposeRequest, now time.Time) ([]pending, error) {
	if len(req.Lengths) == 0 || len(req.Lengths) != len(req.RemainingMs) || len(req.Lengths) > 4*entryCommands {
		return nil, registry.Invalid("commands", "", "columns of different length")
	}
	commands := make([]pending, len(req.Lengths))
	rest := req.Commands
	for i, length := range req.Lengths {
		if uint64(length) > uint64(len(rest)) {
			return nil, registry.Invalid("commands", "", "shorter than their lengths")
		}
		encoded := rest[:length]
		rest = rest[length:]
		cmd, err := wire.DecodeCommand(encoded)
		if err != nil {
			return nil, err
		}
		remaining := time.Duration(req.RemainingMs[i]) * time.Millisecond
		commands[i] = pending{cmd: cmd, encoded: encoded, deadline: now.Add(remaining)}
	}
	if len(rest) > 0 {
		return nil, registry.Invalid("commands", "", "longer than their lengths")
	}
	return commands, nil
}

// refusedAll tells whether this node turned out not to lead before anything was proposed.
func refusedAll(outcomes []wire.Outcome) bool {
	for i := range outcomes {
		if outcomes[i].Err == nil || outcomes[i].Err.Code != registry.CodeNotLeader {
			return false
		}
	}
	return true
}

// ReadIndex answers with an index that a linearizable read must wait for.
func (s *server) ReadIndex(ctx context.Context, _ *peerpb.ReadIndexRequest) (*peerpb.ReadIndexResponse, error) {
	index, err := s.node.readIndexHere(ctx)
	if err != nil {
		return &peerpb.ReadIndexResponse{NotLeader: true, Leader: s.node.hint()}, nil
	}
	return &peerpb.ReadIndexResponse{Index: index}, nil
}

// Beats hands a batch of beats to the leader's table.
func (s *server) Beats(ctx context.Context, req *peerpb.BeatsRequest) (*peerpb.BeatsResponse, error) {
	n := s.node
	if n.leads() == 0 || n.opts.OnBeats == nil {
		return &peerpb.BeatsResponse{NotLeader: true, Leader: n.hint()}, nil
	}
	batch, err := wire.DecodeBeats(req)
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	answer, err := n.opts.OnBeats(ctx, batch)
	if err != nil {
		return &peerpb.BeatsResponse{Fault: wire.EncodeFault(err)}, nil
	}
	return wire.EncodeBeatAnswer(answer), nil
}

// Progress tells how far this node has applied.
func (s *server) Progress(context.Context, *peerpb.ProgressRequest) (*peerpb.ProgressResponse, error) {
	n := s.node
	term := n.leads()
	return &peerpb.ProgressResponse{
		Leads: term != 0, Term: term, Applied: n.fsm.Applied(), Leader: n.hint(),
		Node: n.id, Incarnation: n.incarnation, Http: n.opts.HTTPAddr, Ready: n.Ready() == nil,
		DiskLow: n.disk.low.Load(),
	}, nil
}

// hint names the leader for a node that asked the wrong one.
func (n *Node) hint() *peerpb.Hint {
	v := n.tracker.load()
	if v.id == "" {
		return nil
	}
	return &peerpb.Hint{Id: v.id, Address: v.address, Term: v.term}
}
