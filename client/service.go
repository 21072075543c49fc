package client

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
)

// Service is a followed service: a handle on what this client knows of it, kept up to
// date in the background until Close.
type Service struct {
	f      *follower
	ctx    context.Context // of the handle's subscriptions
	cancel context.CancelFunc
	closed atomic.Bool
}

// Follow begins to follow a service, or joins those who do. With clusters, only their
// instances are seen.
//
// It waits for the first list, at most as long as Options.Timeout. When no server gives
// one, the list of the disk cache or the fail-over directory is used instead, and when
// there is none either the error matches ErrUnavailable, or is the *ServerError of a
// refusal. A service that does not exist is no error but empty. Each handle needs its own Close.
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
// FromNowhere, until the first list arrives in the background. Errors: *InvalidError,
// ErrClosed.
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

// Name is the service's name.
func (s *Service) Name() ServiceName { return s.f.key.name }

// Snapshot is what is known now. It blocks on nothing and allocates nothing.
func (s *Service) Snapshot() *Snapshot { return s.f.current.Load() }

// Pick chooses a healthy instance at random by weight; the error is ErrNoInstance.
func (s *Service) Pick() (*Instance, error) { return found(s.Snapshot().Pick()) }

// PickNear prefers the instances of a cluster; the error is ErrNoInstance.
func (s *Service) PickNear(cluster string) (*Instance, error) {
	return found(s.Snapshot().PickNear(cluster))
}

// Next goes round the healthy instances; the error is ErrNoInstance.
func (s *Service) Next() (*Instance, error) { return found(s.Snapshot().Next()) }

// PickByKey is consistent hashing, see Snapshot.PickByKey; the error is ErrNoInstance.
func (s *Service) PickByKey(key string) (*Instance, error) { return found(s.Snapshot().PickByKey(key)) }

func found(i *Instance) (*Instance, error) {
	if i == nil {
		return nil, ErrNoInstance
	}
	return i, nil
}

// Subscribe calls f with everything that is there, as soon as that is known and even when
// it is nothing, and from then on with what changed, one call after the other in a goroutine of the subscription. Changes that come while f runs
// are told together by the next call, so that a slow f misses no state and holds up
// nobody. The returned function ends the subscription; a call that is under way is not
// waited for. Closing the service ends it too.
func (s *Service) Subscribe(f func(Event)) (stop func()) {
	if s.closed.Load() {
		return func() {}
	}
	return s.f.subscribe(s.ctx, f)
}

// Refresh asks a server now and waits for its list to be in place.
func (s *Service) Refresh(ctx context.Context) error {
	if s.closed.Load() {
		return ErrClosed
	}
	return s.f.fetch(ctx, 0, false)
}

// Hint has the list asked for soon, for a caller who has seen an instance fail. It does
// not wait.
func (s *Service) Hint() {
	if !s.closed.Load() {
		s.f.hint(0, 0, "caller")
	}
}

// Close ends the handle. With the last one of a service, the client stops to ask for it
// and to be told; Close does not wait for that.
func (s *Service) Close() {
	if s.closed.CompareAndSwap(false, true) {
		s.cancel()
		s.f.leave()
	}
}
