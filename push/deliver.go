package push

import (
	"time"

	"github.com/rollcall-io/rollcall/registry"
)

// view is what a packet depends on beside the service.
type view struct {
	clusters string
	grouped  bool
}

// deliver sends the present state of a service to those of its subscribers that do not
// have it. What changes meanwhile makes the service due again.
func (p *Pusher) deliver(t *topic) {
	started := time.Now()
	groups, since, changes, service := p.targets(t)
	shown := service
	if shown == nil {
		shown = gone(t.key, p.opts.State.DeletedStamp())
	}
	sent := false
	for v, targets := range groups {
		packet, err := newPacket(p.opts.Renderer.PushList(shown, v.clusters, v.grouped), shown.Stamp)
		if err != nil {
			p.metrics.dropEncode.Add(float64(len(targets)))
			p.opts.Logger.Error("push packet", "service", t.key.String(), "err", err)
			continue
		}
		sent = p.send(packet, targets, shown, since) || sent
	}
	if !sent {
		changes = 0
	}
	p.delivered(t, service, started, changes)
}

// gone stands for a service that does not exist any more: empty, with a stamp that is not
// below the last one that it had.
func gone(k registry.ServiceKey, stamp int64) *registry.Service {
	return &registry.Service{Key: k, ServiceSpec: registry.ServiceSpec{Selector: registry.Selector{Type: registry.SelectorNone}}, Stamp: stamp}
}

// targets takes the mark off a topic, reads its service and groups the subscribers that
// need that state. The mark goes first: a change after the read sets it again.
func (p *Pusher) targets(t *topic) (groups map[view][]*subscriber, since time.Time, changes int, service *registry.Service) {
	p.mu.Lock()
	since, changes = t.since, t.changes
	t.dirty, t.changes = false, 0
	p.mu.Unlock()
	service = p.opts.State.Service(t.key)
	deleted, enabled := p.opts.State.DeletedStamp(), p.opts.State.Switches().PushEnabled
	if !enabled {
		return nil, since, changes, service
	}
	groups = make(map[view][]*subscriber)
	p.mu.Lock()
	defer p.mu.Unlock()
	for sub := range t.subs {
		if sub.wants(service, deleted) {
			v := view{sub.Clusters, sub.Grouped}
			groups[v] = append(groups[v], sub)
		}
	}
	return groups, since, changes, service
}

// send gives a packet to all who share it. Acknowledgements are awaited before the packet
// is out, or a quick one would come to nobody.
func (p *Pusher) send(packet packet, targets []*subscriber, shown *registry.Service, since time.Time) (sent bool) {
	now := time.Now()
	for _, sub := range p.expect(packet, targets, shown, now) {
		if len(packet.bytes) > maxDatagram {
			p.metrics.dropTooLong.Inc()
			continue
		}
		if err := p.socket.send(packet.bytes, sub.Addr); err != nil {
			p.metrics.dropSocket.Inc()
			continue
		}
		sent = true
		p.metrics.sent.Inc()
		p.metrics.commitToSent.Observe(time.Since(since).Seconds())
	}
	return sent
}

// expect notes what is about to be told, and that an acknowledgement is to come. None is
// awaited of a client that cannot read so long a packet. Those that must be told nothing,
// since too much went to their address for no answer, are left out of what it returns.
func (p *Pusher) expect(packet packet, targets []*subscriber, shown *registry.Service, now time.Time) []*subscriber {
	p.mu.Lock()
	defer p.mu.Unlock()
	kept := targets[:0]
	for _, sub := range targets {
		if sub.Named && !p.named.allow(sub.Addr.Addr(), len(packet.bytes), now) {
			sub.waits = waiting{}
			p.metrics.dropStranger.Inc()
			continue
		}
		kept = append(kept, sub)
		retry := sub.waits.overdue && !sub.again && shown.Stamp <= sub.told
		if !retry {
			p.total.Add(1)
		}
		sub.again = false
		sub.told, sub.empty = max(sub.told, shown.Stamp), shown.Len() == 0
		if !sub.waits.at.IsZero() && !retry {
			p.metrics.superseded.Inc()
		}
		sub.waits = waiting{}
		if fits(len(packet.bytes), sub.MaxPacket) {
			sub.waits = waiting{stamp: shown.Stamp, at: now, retried: retry}
		}
	}
	return kept
}

func fits(length, limit int) bool {
	return length <= maxDatagram && (limit == 0 || length <= limit)
}

// delivered ends the sending of a topic, of so many changes, and queues it again when the
// service moved on.
func (p *Pusher) delivered(t *topic, was *registry.Service, started time.Time, changes int) {
	moved := p.opts.State.Service(t.key) != was
	now := time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	t.sending = false
	if changes > 0 {
		t.pace.sent(started, changes)
	}
	switch {
	case t.dirty:
		p.enqueue(t, t.pace.due(now))
	case moved:
		p.mark(t, now)
	default:
		p.forget(t)
	}
}
