package raftnode

import (
	"context"
	"errors"
	"time"

	"github.com/rollcall-io/rollcall/internal/wire"
	"github.com/rollcall-io/rollcall/raftnode/batch"
	"github.com/rollcall-io/rollcall/registry"
)

// Propose takes a command into the log from any node and returns once it is applied on
// this one. Without an earlier deadline in ctx it lasts at most Options.WriteTimeout.
//
// A refusal by Apply is returned both in the result and as the error. Other errors:
// registry.ErrNoLeader and registry.ErrTimeout (nothing was proposed before the
// deadline), registry.ErrOverloaded, registry.ErrDiskFull, registry.ErrShuttingDown,
// and registry.ErrUncertain when the command may or may not take effect; such a command
// is never proposed again by this node.
func (n *Node) Propose(ctx context.Context, cmd registry.Command) (registry.Result, error) {
	encoded, err := wire.EncodeCommand(cmd)
	if err != nil {
		return registry.Result{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, n.opts.WriteTimeout)
	defer cancel()
	outcome := n.route(ctx, cmd, encoded)
	if outcome.Err == nil {
		outcome.Err = n.awaitApplied(ctx, outcome.Result.Index)
	}
	if outcome.Err != nil {
		if outcome.Err.Code == registry.CodeUncertain {
			n.m.unknown.Inc()
		}
		return registry.Result{}, outcome.Err
	}
	if outcome.Result.Err != nil {
		return outcome.Result, outcome.Result.Err
	}
	return outcome.Result, nil
}

// route brings the command to the leader, wherever it is. A definite refusal by a node
// that does not lead is tried again while there is time: nothing was proposed then.
func (n *Node) route(ctx context.Context, cmd registry.Command, encoded []byte) wire.Outcome {
	v := n.tracker.load()
	for {
		if v.id == "" {
			if fault := n.hold(ctx, v); fault != nil {
				return wire.Outcome{Err: fault}
			}
			v = n.tracker.load()
			continue
		}
		var o wire.Outcome
		if v.self {
			o = n.proposeOne(ctx, cmd, encoded)
		} else {
			o = n.forward(ctx, encoded)
		}
		if o.Err == nil || o.Err.Code != registry.CodeNotLeader {
			return o
		}
		if !n.pause(ctx, v) {
			return wire.Outcome{Err: registry.ErrNoLeader}
		}
		v = n.tracker.load()
	}
}

// proposeOne proposes on this node.
func (n *Node) proposeOne(ctx context.Context, cmd registry.Command, encoded []byte) wire.Outcome {
	deadline, _ := ctx.Deadline()
	one := [1]pending{{cmd: cmd, encoded: encoded, deadline: deadline}}
	outcomes, err := n.proposeHere(ctx, one[:])
	if err != nil {
		return wire.Outcome{Err: asError(err)}
	}
	return outcomes[0]
}

// hold waits for a leader, within ctx; the number of those that wait is bounded.
func (n *Node) hold(ctx context.Context, v *view) *registry.Error {
	if n.stopped() {
		return registry.ErrShuttingDown
	}
	if n.holders.Add(1) > int64(n.opts.MaxHolders) {
		n.holders.Add(-1)
		return registry.ErrNoLeader.Because("no leader, and too many requests wait for one")
	}
	defer n.holders.Add(-1)
	select {
	case <-v.replaced:
		return nil
	case <-n.done:
		return registry.ErrShuttingDown
	case <-ctx.Done():
		return registry.ErrNoLeader
	}
}

// retryPause is the wait before a leader that refused is asked again: it may have been
// elected a moment ago and not know yet.
const retryPause = 20 * time.Millisecond

// pause waits for another view, or a moment; false when ctx ended.
func (n *Node) pause(ctx context.Context, v *view) bool {
	timer := time.NewTimer(retryPause)
	defer timer.Stop()
	select {
	case <-v.replaced:
		return true
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// awaitApplied waits until this node has applied an index.
func (n *Node) awaitApplied(ctx context.Context, index uint64) *registry.Error {
	if n.fsm.Applied() >= index {
		return nil
	}
	if err := n.fsm.WaitApplied(ctx, index); err != nil {
		return registry.ErrUncertain.Because("committed, but not applied on this node before the deadline")
	}
	return nil
}

// ProposeAsLeader takes a command of a leader's own work into the log: only while this
// node leads in that term, else registry.ErrNotLeader. Such commands wait behind those
// of clients, and get at least one entry in eight. Errors are those of Propose.
func (n *Node) ProposeAsLeader(ctx context.Context, term uint64, cmd registry.Command) (registry.Result, error) {
	encoded, err := wire.EncodeCommand(cmd)
	if err != nil {
		return registry.Result{}, err
	}
	if n.proposer.openTerm() != term {
		return registry.Result{}, registry.ErrNotLeader
	}
	ctx, cancel := context.WithTimeout(ctx, n.opts.WriteTimeout)
	defer cancel()
	g := batch.NewGroup(1)
	g.Items[0].Encoded = encoded
	g.Items[0].Deadline, _ = ctx.Deadline()
	n.proposer.queue.Put(g, batch.Background)
	outcomes, err := g.Wait(ctx)
	if err != nil {
		return registry.Result{}, err
	}
	if fault := outcomes[0].Err; fault != nil {
		return registry.Result{}, fault
	}
	if fault := outcomes[0].Result.Err; fault != nil {
		return outcomes[0].Result, fault
	}
	return outcomes[0].Result, nil
}

// pending is a client's command on the leader, from this node or another.
type pending struct {
	cmd      registry.Command
	encoded  []byte
	deadline time.Time
}

// proposeHere proposes commands on this node and waits for all of them. Registrations
// that change nothing are answered without the log, if no command for their key is on
// its way. An error leaves the outcomes of all unknown, or says that none was proposed.
func (n *Node) proposeHere(ctx context.Context, commands []pending) ([]wire.Outcome, error) {
	if n.disk.refusesWrites() {
		return nil, registry.ErrDiskFull
	}
	outcomes := make([]wire.Outcome, len(commands))
	same := n.answerUnchanged(ctx, commands, outcomes)
	if same == len(commands) {
		return outcomes, nil
	}
	g := batch.NewGroup(len(commands) - same)
	next := 0
	for i := range commands {
		if outcomes[i].Result.Index != 0 {
			continue
		}
		it := &g.Items[next]
		next++
		it.Encoded, it.Deadline = commands[i].encoded, commands[i].deadline
		it.Key, it.HasKey = registry.KeyOf(commands[i].cmd)
	}
	n.proposer.queue.Put(g, batch.Client)
	proposed, err := g.Wait(ctx)
	if err != nil {
		return nil, err
	}
	if same == 0 {
		return proposed, nil
	}
	next = 0
	for i := range outcomes {
		if outcomes[i].Result.Index == 0 {
			outcomes[i] = proposed[next]
			next++
		}
	}
	return outcomes, nil
}

// answerUnchanged fills in the outcomes of registrations that change nothing, and
// counts them. It asks twice: at first to see whether a leadership check is worth it,
// then for good once leadership is checked.
func (n *Node) answerUnchanged(ctx context.Context, commands []pending, outcomes []wire.Outcome) int {
	if n.opts.Unchanged == nil || n.leads() == 0 {
		return 0
	}
	candidates := false
	for i := range commands {
		if _, same := n.unchanged(commands[i].cmd); same {
			candidates = true
			break
		}
	}
	if !candidates || n.VerifyLeader(ctx) != nil {
		return 0
	}
	count := 0
	for i := range commands {
		if result, same := n.unchanged(commands[i].cmd); same && result.Index != 0 {
			outcomes[i].Result = result
			count++
		}
	}
	n.m.unchanged.Add(float64(count))
	return count
}

func (n *Node) unchanged(cmd registry.Command) (registry.Result, bool) {
	register, is := cmd.(registry.Register)
	if !is {
		return registry.Result{}, false
	}
	if key, _ := registry.KeyOf(register); n.proposer.queue.Busy(key) {
		return registry.Result{}, false
	}
	return n.opts.Unchanged(register)
}

// asError finds the registry's error in err; what is none has an unknown outcome.
func asError(err error) *registry.Error {
	var e *registry.Error
	if errors.As(err, &e) {
		return e
	}
	return registry.ErrUncertain.Because(err.Error())
}
