package client

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
)

// Service is a followed service: a handle on what this client knows of it, kept up to
// date in the background until Close. Handles of one service and the same clusters share
// what is behind them: one goroutine that asks, one stream. It is safe for concurrent use.
// After Close, its own or the client's, it still gives what was known then or later.
type Service struct {
	f      *follower
	ctx    context.Context // of the handle's subscriptions
	cancel context.CancelFunc
	closed atomic.Bool
}

// Follow begins to follow a service, or joins those who do. With clusters, only their
// instances are seen, as the server filters them. Each handle needs its own Close.
//
// It waits for the first list, for one round over the servers and at most as long as
// Options.Timeout. When no server gives one, the list of CacheDir or FailoverDir is used
// instead, and its Source says so. A service that does not exist is no error but empty.
//
// Errors, after which nothing is followed: *InvalidError; ErrClosed; ErrUnavailable when
// no server gave a list and there is none on disk; a *ServerError when one refused; the
// context's. A program that shall start without a registry takes FollowLazy.
func (c *Client) Follow(ctx context.Context, name ServiceName, clusters ...string) (*Service, error) {
	s, err := c.FollowLazy(name, clusters...)
	if err != nil {
		return nil, err
	}
	select {
	case <-s.f.tried:
	case <-ctx.Done():
		err = ctx.Err()
	case <-s.f.ctx.Done():
		err = ErrClosed
	}
	if err == nil && s.Snapshot().source == FromNowhere {
		err = s.f.lastError()
	}
	if err != nil {
		s.Close()
		return nil, fmt.Errorf("follow %s: %w", s.Name(), err)
	}
	return s, nil
}

// FollowLazy is Follow without the wait: the service is empty, and its snapshot
// FromNowhere, until the first list arrives in the background, however long that takes.
// Failures are logged and repeated, after 8 s at most. It does not block. Errors:
// *InvalidError, ErrClosed.
func (c *Client) FollowLazy(name ServiceName, clusters ...string) (*Service, error) {
	name, err := name.normal()
	if err != nil {
		return nil, err
	}
	for _, cluster := range clusters {
		if cluster == "" || strings.Contains(cluster, ",") {
			return nil, invalid("cluster", cluster, "must be a name")
		}
	}
	clusters = slices.Compact(slices.Sorted(slices.Values(clusters)))
	f, err := c.followers.join(c, followKey{name, strings.Join(clusters, ",")})
	if err != nil {
		return nil, err
	}
	s := &Service{f: f}
	s.ctx, s.cancel = context.WithCancel(f.ctx)
	return s, nil
}

// Name is the service's name, with its group.
func (s *Service) Name() ServiceName { return s.f.key.name }

// Snapshot is what is known now, never nil. It blocks on nothing and allocates nothing.
func (s *Service) Snapshot() *Snapshot { return s.f.current.Load() }

// Pick chooses a healthy instance at random by weight, see Snapshot.Pick. It blocks on
// nothing. The only error is ErrNoInstance.
func (s *Service) Pick() (*Instance, error) { return found(s.Snapshot().Pick()) }

// PickNear is Pick that prefers the instances of a cluster, see Snapshot.PickNear. The only
// error is ErrNoInstance.
func (s *Service) PickNear(cluster string) (*Instance, error) {
	return found(s.Snapshot().PickNear(cluster))
}

// Next goes round the healthy instances, see Snapshot.Next. The only error is
// ErrNoInstance.
func (s *Service) Next() (*Instance, error) { return found(s.Snapshot().Next()) }

// PickByKey is consistent hashing, see Snapshot.PickByKey. The only error is ErrNoInstance.
func (s *Service) PickByKey(key string) (*Instance, error) { return found(s.Snapshot().PickByKey(key)) }

func found(i *Instance) (*Instance, error) {
	if i == nil {
		return nil, ErrNoInstance
	}
	return i, nil
}

// Subscribe calls f with everything that is there, as soon as that is known and even when
// it is nothing, and from then on with what changed: one call after the other, in a
// goroutine of the subscription. Changes that come while f runs are told together by the
// next call, so that a slow f misses no state and holds up nobody. An f that panics is
// logged and called again.
//
// It does not block. The returned function ends the subscription, and so does Close of
// this handle or of the client: no call begins afterwards, one that is under way is not
// waited for, except by Client.Close, which f must not call. On a closed handle f is never
// called.
func (s *Service) Subscribe(f func(Event)) (stop func()) {
	if s.closed.Load() {
		return func() {}
	}
	return s.f.subscribe(s.ctx, f)
}

// Refresh asks a server now and waits for its list to be in place, at most as long as
// Options.Timeout. A list that is older than what is known counts for nothing and is no
// error. Errors: ErrClosed, ErrUnavailable (with the context's when that ended it), a
// *ServerError when a server refused.
func (s *Service) Refresh(ctx context.Context) error {
	if s.closed.Load() {
		return ErrClosed
	}
	return s.f.fetch(ctx, 0, false)
}

// Hint has the list asked for soon, for a caller who has seen an instance fail. Any number
// of hints within 20 ms is one request. It does not block, and does nothing after Close.
func (s *Service) Hint() {
	if !s.closed.Load() {
		s.f.hint(0, 0, "caller")
	}
}

// Close ends the handle and its subscriptions. With the last handle of a service, the
// client stops to ask for it and to be told; Close does not wait for that. Closing twice
// does nothing.
func (s *Service) Close() {
	if s.closed.CompareAndSwap(false, true) {
		s.cancel()
		s.f.leave()
	}
}
