package raftnode

import (
	"context"

	"github.com/rollcall-io/rollcall/internal/wire"
	"github.com/rollcall-io/rollcall/registry"
)

// The topics under which nodes speak of silent leases; see Options.OnAsk.
const (
	// TopicSilent asks for what a node knows of silent leases; the question is empty.
	TopicSilent = "silent"
	// TopicRenewed tells of leases that were renewed; the answer is empty.
	TopicRenewed = "renewed"
)

// AskSilent asks all other members for what they know of silent leases. It blocks until
// all have answered or ctx ends; who is down or answers nonsense is left out.
func (n *Node) AskSilent(ctx context.Context) []registry.SilentNotes {
	var all []registry.SilentNotes
	for id, answer := range n.AskOthers(ctx, TopicSilent, nil) {
		notes, err := wire.DecodeSilentNotes(answer)
		if err != nil {
			n.log.Warn("answer about silent leases not taken", "peer", id, "err", err)
			continue
		}
		all = append(all, notes)
	}
	return all
}

// TellRenewed tells all other members that leases were renewed which they may note as
// silent, at most registry.MaxSilentLeases at once. It blocks until all have heard it or
// ctx ends.
func (n *Node) TellRenewed(ctx context.Context, refs []registry.LeaseRef) {
	notes := registry.SilentNotes{Leases: make([]registry.SilentLease, len(refs))}
	for i, ref := range refs {
		notes.Leases[i].LeaseRef = ref
	}
	question, err := wire.EncodeSilentNotes(notes)
	if err != nil {
		n.log.Error("renewed leases not told", "err", err)
		return
	}
	n.AskOthers(ctx, TopicRenewed, question)
}

// AnswerSilent makes the answer to TopicSilent of what the node knows.
func AnswerSilent(known func() registry.SilentNotes) func(context.Context, []byte) ([]byte, error) {
	return func(context.Context, []byte) ([]byte, error) { return wire.EncodeSilentNotes(known()) }
}

// AnswerRenewed hands the leases of TopicRenewed on.
func AnswerRenewed(take func([]registry.LeaseRef)) func(context.Context, []byte) ([]byte, error) {
	return func(_ context.Context, question []byte) ([]byte, error) {
		notes, err := wire.DecodeSilentNotes(question)
		if err != nil {
			return nil, err
		}
		refs := make([]registry.LeaseRef, len(notes.Leases))
		for i, l := range notes.Leases {
			refs[i] = l.LeaseRef
		}
		take(refs)
		return nil, nil
	}
}
