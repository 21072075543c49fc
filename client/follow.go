package client

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// streamPoll is how often a list is asked for although a stream would tell: a node
	// that is cut off from the others tells nothing and does not know it.
	streamPoll = 20 * time.Second
	// behindPause is until a list is asked for again that was older than what a push
	// told, and behindTries how often.
	behindPause = 50 * time.Millisecond
	behindTries = 20
	// secondLook is when a stock server is asked once more after a push: its nodes hear
	// of a change at different times.
	secondLook = time.Second
	// hintGap is between two lists that hints ask for: what comes faster is asked for once.
	hintGap = 20 * time.Millisecond
	// insist is how long only older lists must have come until one of them counts: the
	// servers have lost what they told before.
	insist = 30 * time.Second
)

// follower keeps one list up to date.
type follower struct {
	c      *Client
	key    followKey
	ctx    context.Context
	cancel context.CancelFunc
	users  int // guarded by followers.mu

	current   atomic.Pointer[Snapshot] // what users see
	turn      atomic.Uint64            // of round robin
	tried     chan struct{}            // closed after the first attempt
	wake      chan struct{}            // a list should be asked for now
	wantIndex atomic.Uint64            // what streams told of
	wantStamp atomic.Int64             // what pushes told of
	streaming atomic.Bool
	told      atomic.Uint64 // events of streams

	mu         sync.Mutex
	live       *Snapshot // the newest list
	pinned     *Snapshot // of the fail-over directory, in its place
	subs       map[*subscription]bool
	err        error // of the last attempt
	begun      uint64
	applied    uint64    // which of the requests that were begun live comes from
	olderSince time.Time // when the row of older lists began
	cacheFor   time.Duration
	unsaved    bool
	outcome    string // of the last list, empty when it failed
	cutStream  func() // ends the stream that is open
	opened     uint64 // streams so far
}

func newFollower(c *Client, key followKey) *follower {
	f := &follower{
		c: c, key: key, tried: make(chan struct{}), wake: make(chan struct{}, 1), subs: map[*subscription]bool{}, cacheFor: time.Second,
	}
	f.ctx, f.cancel = context.WithCancel(c.ctx)
	f.live = newSnapshot(key.name, nil, &f.turn)
	f.current.Store(f.live)
	if c.failover != nil {
		f.pinned = c.failover.pinned(f)
		f.publish()
	}
	return f
}

// run asks for the list whenever it is time to, until the last user left.
func (f *follower) run() {
	defer f.save()
	timer := time.NewTimer(0)
	defer timer.Stop()
	failures, behind, saved := 0, 0, time.Time{}
	var trust trust
	for first := true; ; first = false {
		asked, told := time.Now(), f.told.Load()
		err := f.fetch(f.ctx, f.missing(), true)
		if first {
			if err != nil {
				f.useDisk()
			}
			close(f.tried)
		}
		var next time.Duration
		next, failures, behind = f.plan(err, failures, behind)
		if time.Since(saved) > time.Second {
			f.save()
			saved = time.Now()
		}
		if trust.check(f, asked, told) {
			next = min(next, streamLate)
		}
		timer.Reset(next)
		select {
		case <-f.ctx.Done():
			return
		case <-f.wake:
			if gap := hintGap - time.Since(asked); gap > 0 && !f.c.pause(f.ctx, gap) {
				return
			}
		case <-timer.C:
		}
	}
}

// plan is when to ask next.
func (f *follower) plan(err error, failures, behind int) (next time.Duration, nowFailures, nowBehind int) {
	if err != nil {
		if failures++; failures > 3 {
			f.wantIndex.Store(0) // whoever told of that index is gone: take what there is
		}
		return jitter(min(time.Second<<min(failures-1, 4), retryLongest)/2, 0.5), failures, 0
	}
	f.mu.Lock()
	s, cacheFor := f.live, f.cacheFor
	f.mu.Unlock()
	want := f.wantStamp.Load()
	switch {
	case want > s.stamp && s.ordered && behind < behindTries:
		return behindPause, 0, behind + 1
	case want > 0 && !s.ordered && behind == 0:
		return secondLook, 0, 1
	}
	f.wantStamp.CompareAndSwap(want, 0)
	switch {
	case f.c.opts.PollInterval > 0:
		cacheFor = f.c.opts.PollInterval
	case f.streaming.Load():
		cacheFor = streamPoll
	}
	return jitter(cacheFor, beatJitter), 0, 0
}

// missing is the index that a list must have reached, 0 when any will do.
func (f *follower) missing() uint64 {
	want := f.wantIndex.Load()
	f.mu.Lock()
	defer f.mu.Unlock()
	if want > f.live.index {
		return want
	}
	return 0
}

// hint says that something changed: at an index, or at a stamp, or neither is known.
func (f *follower) hint(index uint64, stamp int64, source string) {
	for old := f.wantIndex.Load(); index > old && !f.wantIndex.CompareAndSwap(old, index); old = f.wantIndex.Load() {
	}
	for old := f.wantStamp.Load(); stamp > old && !f.wantStamp.CompareAndSwap(old, stamp); old = f.wantStamp.Load() {
	}
	f.c.metrics.hints.WithLabelValues(source).Inc()
	f.kick()
}

func (f *follower) kick() {
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// fetch asks for the list and puts it in place.
func (f *follower) fetch(ctx context.Context, minIndex uint64, once bool) error {
	q := call{op: "list", method: http.MethodGet, path: pathInstance + "/list", once: once, query: url.Values{
		"namespaceId": {f.c.opts.Namespace}, "serviceName": {f.key.name.String()}, "groupName": {f.key.name.Group},
		"clusters": {f.key.clusters}, "healthyOnly": {"false"},
	}}
	if minIndex > 0 {
		q.query.Set("minIndex", strconv.FormatUint(minIndex, 10))
	}
	if !f.streaming.Load() && f.c.push.wanted() {
		f.c.push.ask(&q)
	}
	f.mu.Lock()
	f.begun++
	number := f.begun
	f.mu.Unlock()
	r, err := f.c.do(ctx, q)
	var l wireList
	if err == nil {
		if l, err = parseList(r.body); err != nil {
			err = unreadable("list", r, err)
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.outcome = ""
	if err == nil && f.err != nil {
		f.c.opts.Logger.Info("a list of instances again", "service", f.key.name, "instances", len(l.Hosts))
	}
	if f.err = err; err == nil {
		f.cacheFor = l.cacheFor()
		f.outcome = f.put(l, r.index, number)
		f.c.metrics.updates.WithLabelValues(f.outcome).Inc()
	} else if !errors.Is(err, context.Canceled) && !errors.Is(err, ErrClosed) {
		f.c.opts.Logger.Warn("no list of instances", "service", f.key.name, "error", err)
	}
	return err
}

func (f *follower) lastError() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err == nil {
		return ErrUnavailable
	}
	return f.err
}
