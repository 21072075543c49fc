package health

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/rollcall-io/rollcall/registry"
)

const (
	// beatPatience is how long a beat waits for a verdict, and for the outcome of an
	// eviction in flight.
	beatPatience = time.Second
	// pendingPoll is how often a beat asks for that outcome.
	pendingPoll = 20 * time.Millisecond
)

// Beat takes a client's beat on any node and returns what the leader says to it. It
// blocks for one exchange with the leader, at most a second or so. A full beat of an
// unknown instance registers it through the log.
//
// Errors: ErrNoLeader when none was heard for too long, ErrOverloaded, ErrShuttingDown,
// ErrNotReady before Run, ctx's, and those of a registration.
func (k *Keeper) Beat(ctx context.Context, b registry.Beat) (registry.BeatReply, error) {
	in := k.state.Instance(b.Key)
	if in != nil && !in.Ephemeral {
		k.metrics.beatKnown.Inc()
		return k.reply(in, b.Full), nil // persistent instances need no beats; they may send them
	}
	verdict, err := k.ask(ctx, b.Key, in)
	if err != nil {
		k.metrics.beatRefused.Inc()
		return registry.BeatReply{}, err
	}
	if verdict == registry.BeatPending || verdict == registry.BeatStale {
		// The second is over without an outcome: what the state says now counts.
		verdict = registry.BeatUnknown
		if in = k.state.Instance(b.Key); in != nil {
			verdict = registry.BeatRenewed
		}
	}
	if verdict == registry.BeatUnknown {
		return k.unknown(ctx, b)
	}
	k.metrics.beatKnown.Inc()
	if in == nil {
		in = k.caughtUp(ctx, b)
	}
	return k.reply(in, b.Full), nil
}

// caughtUp is the instance that the leader knows and this node, behind it, did not. A
// light beat waits for it: the answer must name the instance's own interval, or a client
// with a short one waits too long for its next beat. A full beat names it itself.
func (k *Keeper) caughtUp(ctx context.Context, b registry.Beat) *registry.Instance {
	deadline := k.opts.Now() + beatPatience
	in := k.state.Instance(b.Key)
	for in == nil && b.Full == nil && k.opts.Now() < deadline && sleep(ctx, pendingPoll) {
		in = k.state.Instance(b.Key)
	}
	return in
}

// ask gets the leader's verdict on a beat. A stale lease is asked for again by key, a
// pending one until its eviction is decided, for a second in all.
func (k *Keeper) ask(ctx context.Context, key registry.InstanceKey, in *registry.Instance) (registry.Verdict, error) {
	w := waiter{key: key}
	if in != nil {
		w.known = refOf(in)
	}
	verdict, err := k.askOnce(ctx, w)
	if err != nil || decided(verdict) {
		return verdict, err
	}
	deadline := k.opts.Now() + beatPatience
	for {
		if w.byKey || verdict == registry.BeatPending {
			if !sleep(ctx, pendingPoll) {
				return 0, fmt.Errorf("beat of %s: %w", key, registry.ErrTimeout)
			}
		}
		w.byKey, w.known = true, registry.LeaseRef{}
		if in = k.state.Instance(key); in != nil {
			w.known = refOf(in)
		}
		verdict, err = k.askOnce(ctx, w)
		if err != nil || decided(verdict) || k.opts.Now() >= deadline {
			return verdict, err
		}
	}
}

func decided(v registry.Verdict) bool { return v != registry.BeatStale && v != registry.BeatPending }

func (k *Keeper) askOnce(ctx context.Context, w waiter) (registry.Verdict, error) {
	var verdict registry.Verdict
	var err error
	if l := k.lead.Load(); l == nil {
		verdict, err = k.collector.submit(ctx, w)
	} else {
		ref := w.known
		if w.byKey {
			ref = registry.LeaseRef{}
		}
		verdict = l.verdict(ref, w.key, l.table.leaseTime())
	}
	if l := k.lead.Load(); l != nil && verdict == registry.BeatRenewed {
		l.renewals.wait(ctx, w.known.Number)
	}
	return verdict, err
}

// unknown answers the beat of an instance that the leader does not know.
func (k *Keeper) unknown(ctx context.Context, b registry.Beat) (registry.BeatReply, error) {
	if b.Full == nil {
		k.metrics.beatUnknown.Inc()
		return registry.BeatReply{Interval: k.state.Switches().ClientBeatInterval}, nil
	}
	_, err := k.cluster.Propose(ctx, registry.Register{Service: b.Key.Service, Spec: *b.Full, FromBeat: true})
	// Deregistered a moment ago, or registered as the other kind meanwhile: answered as
	// known, without effect, so that the client does not register again.
	if err != nil && !errors.Is(err, registry.ErrTombstoned) && !errors.Is(err, registry.ErrKindMismatch) {
		k.metrics.beatRefused.Inc()
		return registry.BeatReply{}, fmt.Errorf("register %s by its beat: %w", b.Key, err)
	}
	k.metrics.beatRegistered.Inc()
	return k.reply(k.state.Instance(b.Key), b.Full), nil
}

// reply is the answer to a beat that was taken; in is nil when the instance is not, or
// not yet, in this node's state. Then a full beat's own metadata names the interval.
func (k *Keeper) reply(in *registry.Instance, full *registry.Spec) registry.BeatReply {
	sw := k.state.Switches()
	interval := sw.ClientBeatInterval
	if in != nil {
		if own, set := ownInterval(in.Timeouts, in.Metadata); set {
			interval = own
		}
	} else if full != nil {
		if t, _, err := registry.ParseTimeouts(full.Metadata); err == nil {
			if own, set := ownInterval(t, full.Metadata); set {
				interval = own
			}
		}
	}
	return registry.BeatReply{Known: true, Interval: interval, LightEnabled: sw.LightBeatEnabled}
}

// ownInterval is the beat interval that metadata sets, t being what was parsed from it.
// The parsed value tells it unless it equals the default: then the default may be there
// for want of a number, and the cluster's switch counts.
func ownInterval(t registry.Timeouts, m registry.Metadata) (uint32, bool) {
	if t.Interval != registry.DefaultBeatInterval {
		return t.Interval, true
	}
	text, found := m.Get(registry.KeyBeatInterval)
	if !found {
		return 0, false
	}
	_, err := strconv.ParseUint(text, 10, 64)
	return t.Interval, err == nil && text != "0"
}
