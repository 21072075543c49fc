package client

import (
	"context"
	"errors"
	"time"
)

const (
	// busyPause is until an entry is looked at again that somebody talks about.
	busyPause = 200 * time.Millisecond
	// retryFirst and retryLongest are between repeats of what a server did not take, but
	// beats go out at their interval all the same unless that is below retryLeast.
	retryLeast   = 50 * time.Millisecond
	retryFirst   = 500 * time.Millisecond
	retryLongest = 15 * time.Second
	// refusedPause is between repeats of what a server refuses.
	refusedPause = time.Minute
	// beatJitter is how much of the interval beats come early at most, so that those of
	// one process, and of processes that started together, spread.
	beatJitter = 0.1
)

// startBeats runs the scheduler and its workers: all goroutines there are for beats.
func (c *Client) startBeats(ctx context.Context) {
	due := make(chan *entry)
	c.spawn(func() {
		defer close(due)
		c.schedule(ctx, due)
	})
	for range c.opts.BeatWorkers {
		c.spawn(func() {
			for e := range due {
				c.tend(ctx, e)
			}
		})
	}
}

// schedule hands out entries when they are due, and waits while all workers are busy.
func (c *Client) schedule(ctx context.Context, due chan<- *entry) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		e, wait := c.table.nextDue()
		if e == nil {
			timer.Reset(wait)
			select {
			case <-ctx.Done():
				return
			case <-c.table.wake:
			case <-timer.C:
			}
			continue
		}
		select {
		case <-ctx.Done():
			return
		case due <- e:
		}
	}
}

// nextDue takes the entry that is due, or says how long there is none.
func (t *table) nextDue() (*entry, time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.heap) == 0 {
		return nil, time.Hour
	}
	e := t.heap[0]
	if wait := time.Until(e.due); wait > 0 {
		return nil, wait
	}
	t.heap.remove(e)
	return e, 0
}

// tend does what the entry needs: a registration, a beat, a deregistration.
func (c *Client) tend(ctx context.Context, e *entry) {
	if !e.tryTake() {
		c.table.mu.Lock()
		c.table.schedule(e, busyPause)
		c.table.mu.Unlock()
		return
	}
	defer e.release()
	c.table.mu.Lock()
	work, gone, late := *e, e.gone, time.Since(e.due)
	c.table.mu.Unlock()
	if gone {
		return
	}
	c.metrics.lag.Set(max(late, 0).Seconds())
	switch {
	case work.leaving:
		c.settleLeaving(e, c.sendDeregister(ctx, work.want, true))
	case !work.registered:
		c.settleRegister(e, c.sendRegister(ctx, work.want, true))
	case !work.want.Persistent:
		c.tendBeat(ctx, e, work)
	}
}

// tendBeat beats once, and registers when the servers have forgotten the instance.
func (c *Client) tendBeat(ctx context.Context, e *entry, work entry) {
	// A full beat would bring a disabled instance back as one that gets traffic.
	answer, err := c.sendBeat(ctx, work.want, work.light || work.want.Disabled)
	if err == nil && answer.Code == codeUnknown {
		c.metrics.beats.WithLabelValues("unknown").Inc()
		c.opts.Logger.Info("instance was forgotten, registering again", "instance", e.key)
		c.settleRegister(e, c.sendRegister(ctx, work.want, true))
		return
	}
	c.table.mu.Lock()
	defer c.table.mu.Unlock()
	if err != nil {
		c.metrics.beats.WithLabelValues("error").Inc()
		e.light = false
		e.failures++
		// Evicted by now: a beat would bring it back without all that was registered.
		if time.Since(e.alive) > e.want.deleteTimeout() {
			c.table.setRegistered(e, false)
		}
		c.table.schedule(e, min(retryAfter(err, e.failures), max(jitter(e.interval, beatJitter), retryLeast)))
		if e.failures == 1 {
			c.opts.Logger.Warn("beat failed", "instance", e.key, "error", err)
		}
		return
	}
	c.metrics.beats.WithLabelValues("ok").Inc()
	if e.failures > 0 {
		c.opts.Logger.Info("beats get through again", "instance", e.key, "failures", e.failures)
	}
	e.failures, e.alive, e.light = 0, time.Now(), answer.LightBeatEnabled
	if answer.ClientBeatInterval > 0 {
		e.interval = min(time.Duration(answer.ClientBeatInterval)*time.Millisecond, time.Hour)
	}
	c.table.schedule(e, jitter(e.interval, beatJitter))
}

// settleRegister notes how a registration went and when to look again. Its error is the
// one given, wrapped with ErrPending when it goes on by itself.
func (c *Client) settleRegister(e *entry, err error) {
	c.table.mu.Lock()
	defer c.table.mu.Unlock()
	if err != nil {
		c.table.setRegistered(e, false)
		e.failures++
		c.table.schedule(e, retryAfter(err, e.failures))
		c.opts.Logger.Warn("registration failed, will be repeated", "instance", e.key, "error", err)
		return
	}
	if e.failures > 0 {
		c.opts.Logger.Info("registered after failures", "instance", e.key, "failures", e.failures)
	}
	c.table.setRegistered(e, true)
	e.failures, e.alive, e.light = 0, time.Now(), false
	if !e.want.Persistent {
		c.table.schedule(e, jitter(e.interval, 0.5)) // those registered together spread over half an interval
	}
}

// settleLeaving notes how a deregistration went. What a server refuses is not there; an
// ephemeral instance that nobody could be told of has expired after a while.
func (c *Client) settleLeaving(e *entry, err error) {
	c.table.mu.Lock()
	defer c.table.mu.Unlock()
	expired := !e.want.Persistent && time.Since(e.leftAt) > 2*e.want.deleteTimeout()
	if err == nil || refused(err) || expired {
		c.table.remove(e)
		return
	}
	e.failures++
	c.table.schedule(e, retryAfter(err, e.failures))
}

func retryAfter(err error, failures int) time.Duration {
	if refused(err) {
		return jitter(refusedPause, 0.5)
	}
	if errors.Is(err, context.Canceled) {
		return retryFirst
	}
	return jitter(min(retryFirst<<min(failures-1, 5), retryLongest), 0.5)
}
