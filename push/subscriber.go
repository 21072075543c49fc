package push

import (
	"context"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/rollcall-io/rollcall/registry"
)

// sweepInterval is how often leases and acknowledgements are looked at.
const sweepInterval = time.Second

type addrKey = netip.AddrPort

// subscriberKey is what tells two subscribers apart.
type subscriberKey struct {
	service  registry.ServiceKey
	clusters string
	addr     addrKey
	agent    string
}

// subscriber is one client that wants to hear of one service. Its fields are guarded by
// the Pusher's lock.
type subscriber struct {
	registry.Subscriber
	topic   *topic
	expires time.Time
	// told is the change stamp of the newest state that the client was given, and empty
	// whether that had no instances; 0 and true for a service that does not exist.
	told  int64
	empty bool
	// again asks for the present state to be sent whatever was told.
	again bool
	// waits is the last packet while its acknowledgement is awaited.
	waits waiting
}

// waiting is a packet on its way. The zero value is none.
type waiting struct {
	stamp   int64
	at      time.Time
	overdue bool // to be sent again
	retried bool // was sent again
}

func keyOf(s *registry.Subscriber) subscriberKey {
	return subscriberKey{s.Service, s.Clusters, s.Addr, s.Agent}
}

// Subscribe adds a subscriber or renews its lease, and tells whether it will get pushes.
// told is the service as the client is about to be told it, nil for an unknown one: what
// changed since then is pushed. It is refused while pushes are switched off and when the
// table is full. The strings of s may share memory with a request: they are copied.
func (p *Pusher) Subscribe(s registry.Subscriber, told *registry.Service) (granted bool) {
	if !p.opts.State.Switches().PushEnabled {
		return false
	}
	now := time.Now()
	p.mu.Lock()
	sub := p.subs[keyOf(&s)]
	known := sub != nil
	if !known {
		if sub = p.add(s); sub == nil {
			p.mu.Unlock()
			p.metrics.refused.Inc()
			return false
		}
	}
	sub.expires = now.Add(p.opts.Lease)
	sub.Named = s.Named
	sub.answered(told, known)
	again := sub.again
	p.mu.Unlock()
	// A change between the caller's look at the service and the moment at which the
	// subscriber was in the table was told to nobody.
	if p.opts.State.Service(sub.Service) != told || again {
		p.lookAgain(sub)
	}
	return true
}

// answered notes what the client is about to be told in answer to its query. A push of
// something newer may reach it before: then the present state is pushed once more. The
// answer to who renews a subscription stands for no push: Java and Node.js throw it away
// when a push came since their query before.
func (sub *subscriber) answered(told *registry.Service, renews bool) {
	stamp, empty := stampOf(told)
	switch {
	case told == nil && !sub.empty, told != nil && stamp < sub.told:
		sub.again = true
	case told != nil && !renews:
		sub.told, sub.empty = stamp, empty
	}
}

func (p *Pusher) lookAgain(sub *subscriber) {
	now, deleted := p.opts.State.Service(sub.Service), p.opts.State.DeletedStamp()
	p.mu.Lock()
	defer p.mu.Unlock()
	if sub.wants(now, deleted) {
		p.mark(sub.topic, time.Now())
	}
}

// add needs mu. It is nil when there is no room.
func (p *Pusher) add(s registry.Subscriber) *subscriber {
	if len(p.subs) >= p.opts.MaxSubscribers || len(p.byAddr[s.Addr]) >= p.opts.MaxPerAddr {
		return nil
	}
	s.Service = registry.ServiceKey{Namespace: strings.Clone(s.Service.Namespace), Grouped: strings.Clone(s.Service.Grouped)}
	s.Clusters, s.Agent, s.App = strings.Clone(s.Clusters), strings.Clone(s.Agent), strings.Clone(s.App)
	t := p.topics[s.Service]
	if t == nil {
		t = &topic{key: s.Service, subs: make(map[*subscriber]struct{}), at: notQueued,
			pace: pace{min: p.opts.MinMerge, max: p.opts.MaxMerge}}
		p.topics[t.key] = t
	}
	sub := &subscriber{Subscriber: s, topic: t, empty: true}
	t.subs[sub] = struct{}{}
	p.subs[keyOf(&s)] = sub
	p.byAddr[s.Addr] = append(p.byAddr[s.Addr], sub)
	return sub
}

// remove needs mu. A topic without subscribers goes when nobody is sending it.
func (p *Pusher) remove(sub *subscriber) {
	delete(p.subs, keyOf(&sub.Subscriber))
	rest := p.byAddr[sub.Addr]
	if i := slices.Index(rest, sub); i >= 0 {
		rest = slices.Delete(rest, i, i+1)
	}
	if len(rest) == 0 {
		delete(p.byAddr, sub.Addr)
	} else {
		p.byAddr[sub.Addr] = rest
	}
	delete(sub.topic.subs, sub)
	p.forget(sub.topic)
}

// forget drops a topic that nobody needs. It needs mu.
func (p *Pusher) forget(t *topic) {
	if len(t.subs) == 0 && !t.sending && t.at == notQueued && p.topics[t.key] == t {
		delete(p.topics, t.key)
	}
}

// wants tells whether the subscriber must be sent the present state of its service, nil
// for one that is gone; deleted is the highest stamp of a deleted service. That it is
// gone is nothing new to who knows it empty.
func (sub *subscriber) wants(now *registry.Service, deleted int64) bool {
	again := sub.again || sub.waits.overdue
	if now == nil {
		return deleted > 0 && (again || !sub.empty)
	}
	return again || now.Stamp > sub.told
}

// stampOf is the change stamp of a service and whether it is empty.
func stampOf(s *registry.Service) (stamp int64, empty bool) {
	if s == nil {
		return 0, true
	}
	return s.Stamp, s.Len() == 0
}

// runSweep drops subscribers whose lease ran out and looks after acknowledgements.
func (p *Pusher) runSweep(ctx context.Context) error {
	ticker := time.NewTicker(min(sweepInterval, p.opts.AckTimeout/4))
	defer ticker.Stop()
	for {
		select {
		case now := <-ticker.C:
			p.sweep(now)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (p *Pusher) sweep(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.named.sweep(now)
	for _, sub := range p.subs {
		if now.After(sub.expires) {
			p.remove(sub)
			continue
		}
		w := &sub.waits
		if w.at.IsZero() || w.overdue || now.Sub(w.at) < p.opts.AckTimeout {
			continue
		}
		if w.retried {
			*w = waiting{}
			p.failed.Add(1)
			p.metrics.unacked.Inc()
			continue
		}
		w.overdue = true
		p.metrics.retries.Inc()
		p.mark(sub.topic, now)
	}
}
