package push

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strconv"

	"github.com/rollcall-io/rollcall/registry"
)

const (
	// maxListed bounds the subscribers in one node's answer.
	maxListed = 20_000
	// maxWaiting bounds the packets that a node's counts describe.
	maxWaiting = 100
)

// question is what one node's pusher asks another's. Unknown fields are ignored and
// missing ones are zero, so that nodes of different versions understand each other.
type question struct {
	Subscribers *registry.SubscriberQuery `json:",omitempty"`
	Counts      bool                      `json:",omitempty"`
	Reset       bool                      `json:",omitempty"`
}

type answer struct {
	Subscribers []listed             `json:",omitempty"`
	Counts      *registry.PushCounts `json:",omitempty"`
}

// listed is a subscriber as it is sent to another node.
type listed struct {
	Namespace, Grouped, Clusters, Agent, App string
	Addr                                     netip.AddrPort
}

// Answer answers a question of another node's pusher.
func (p *Pusher) Answer(text []byte) ([]byte, error) {
	var q question
	if err := json.Unmarshal(text, &q); err != nil {
		return nil, fmt.Errorf("question about subscribers: %w", err)
	}
	var a answer
	if q.Subscribers != nil {
		for _, s := range p.local(*q.Subscribers) {
			a.Subscribers = append(a.Subscribers, listed{
				s.Service.Namespace, s.Service.Grouped, s.Clusters, s.Agent, s.App, s.Addr,
			})
		}
	}
	if q.Counts {
		counts := p.counts(q.Reset)
		a.Counts = &counts
	}
	return json.Marshal(a)
}

// ask puts a question to all other nodes. What cannot be read counts as no answer.
func (p *Pusher) ask(ctx context.Context, q question) []answer {
	if p.opts.Peers == nil {
		return nil
	}
	text, err := json.Marshal(q)
	if err != nil { // plain fields only
		p.opts.Logger.Error("encode question", "err", err)
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, p.opts.PeerTimeout)
	defer cancel()
	var all []answer
	for _, text := range p.opts.Peers.Ask(ctx, text) {
		var a answer
		if err := json.Unmarshal(text, &a); err != nil {
			p.opts.Logger.Warn("answer about subscribers", "err", err)
			continue
		}
		all = append(all, a)
	}
	return all
}

// Subscribers are the subscribers that a query asks for, each once and in order: of this
// node alone, or of all nodes that answer within the peer timeout. It lists at most
// 20,000 of each node.
func (p *Pusher) Subscribers(ctx context.Context, q registry.SubscriberQuery, everywhere bool) []registry.Subscriber {
	list := p.local(q)
	if everywhere {
		for _, a := range p.ask(ctx, question{Subscribers: &q}) {
			for _, l := range a.Subscribers {
				list = append(list, registry.Subscriber{
					Service:  registry.ServiceKey{Namespace: l.Namespace, Grouped: l.Grouped},
					Clusters: l.Clusters, Addr: l.Addr, Agent: l.Agent, App: l.App,
				})
			}
		}
	}
	slices.SortFunc(list, registry.Subscriber.Compare)
	return slices.CompactFunc(list, func(a, b registry.Subscriber) bool { return a.Compare(b) == 0 })
}

func (p *Pusher) local(q registry.SubscriberQuery) []registry.Subscriber {
	p.mu.Lock()
	defer p.mu.Unlock()
	var list []registry.Subscriber
	for k, t := range p.topics {
		if !q.Matches(k) {
			continue
		}
		for sub := range t.subs {
			if len(list) == maxListed {
				return list
			}
			list = append(list, sub.Subscriber)
		}
	}
	return list
}

// Counts are the pushes of all nodes that answer within the peer timeout; reset sets
// them to zero after reading.
func (p *Pusher) Counts(ctx context.Context, reset bool) registry.PushCounts {
	sum := p.counts(reset)
	for _, a := range p.ask(ctx, question{Counts: true, Reset: reset}) {
		if a.Counts != nil {
			sum.Total += a.Counts.Total
			sum.Failed += a.Counts.Failed
			sum.Waiting = append(sum.Waiting, a.Counts.Waiting...)
		}
	}
	slices.Sort(sum.Waiting)
	return sum
}

func (p *Pusher) counts(reset bool) registry.PushCounts {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := registry.PushCounts{Total: p.total.Load(), Failed: p.failed.Load()}
	if reset {
		p.total.Store(0)
		p.failed.Store(0)
	}
	for _, sub := range p.subs {
		if len(c.Waiting) == maxWaiting {
			break
		}
		if !sub.waits.at.IsZero() {
			c.Waiting = append(c.Waiting, sub.Addr.String()+" "+sub.Service.String()+" "+strconv.FormatInt(sub.waits.stamp, 10))
		}
	}
	return c
}
