package health

import (
	"context"
	"fmt"
	"time"

	"github.com/rollcall-io/rollcall/registry"
)

// applyPatience bounds the wait for the sender's applied index. It is shorter than the
// sender's own, so that the sender learns the reason.
const applyPatience = 500 * time.Millisecond

// HandleBeats is the leader's side of a batch: it waits until this node has applied
// what the sender had, and gives a verdict for each beat. The beats count from the
// moment when it judges them. ErrNotLeader when this node has no complete table, or lost
// it meanwhile; the sender then keeps the beats.
func (k *Keeper) HandleBeats(ctx context.Context, b registry.BeatBatch) (registry.BeatAnswer, error) {
	l := k.lead.Load()
	if l == nil {
		return registry.BeatAnswer{}, registry.ErrNotLeader
	}
	if b.Applied > k.state.Applied() {
		if err := k.waitApplied(ctx, b.Applied); err != nil {
			return registry.BeatAnswer{}, fmt.Errorf("beats of %s: wait for index %d: %w", b.Node, b.Applied, err)
		}
	}
	a := l.judge(b)
	a.Silent, a.HasSilent = l.silentFor(b.Node)
	a.Term = l.term
	if k.lead.Load() != l {
		return registry.BeatAnswer{}, registry.ErrNotLeader
	}
	return a, nil
}

func (k *Keeper) waitApplied(ctx context.Context, index uint64) error {
	ctx, cancel := context.WithTimeout(ctx, applyPatience)
	defer cancel()
	return k.state.WaitApplied(ctx, index)
}

// judge gives a verdict for each beat of a batch.
func (l *lead) judge(b registry.BeatBatch) registry.BeatAnswer {
	now := l.table.leaseTime()
	verdicts := make([]registry.Verdict, len(b.Leases)+len(b.Keys))
	a := registry.BeatAnswer{Leases: verdicts[:len(b.Leases)], Keys: verdicts[len(b.Leases):]}
	for i, ref := range b.Leases {
		a.Leases[i] = l.table.beat(ref, now)
	}
	for i, key := range b.Keys {
		a.Keys[i] = l.verdict(registry.LeaseRef{}, key, now)
	}
	return a
}
