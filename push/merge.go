package push

import (
	"slices"
	"time"

	"github.com/rollcall-io/rollcall/registry"
)

// merge makes at most one event of each service out of events in log order, in the order
// of their last indexes. An instance is in it once, from its first value before to its
// last one after; one that came and went is not. since is when the oldest was applied.
func merge(events []kept) (merged []registry.ServiceEvent, since time.Time) {
	bySvc := make(map[registry.ServiceKey]*merging, 1)
	var order []*merging
	for i := range events {
		e := &events[i]
		if since.IsZero() || e.at.Before(since) {
			since = e.at
		}
		m := bySvc[e.Service]
		if m == nil {
			m = &merging{event: registry.ServiceEvent{Service: e.Service}, places: make(map[registry.Address]int, len(e.Changes))}
			bySvc[e.Service] = m
			order = append(order, m)
		}
		m.add(&e.ServiceEvent)
	}
	for _, m := range order {
		if m.finish() {
			merged = append(merged, m.event)
		}
	}
	slices.SortStableFunc(merged, func(a, b registry.ServiceEvent) int {
		switch {
		case a.Index < b.Index:
			return -1
		case a.Index > b.Index:
			return 1
		}
		return 0
	})
	return merged, since
}

// merging is one service's event in the making.
type merging struct {
	event  registry.ServiceEvent
	places map[registry.Address]int
}

func (m *merging) add(e *registry.ServiceEvent) {
	m.event.Index = e.Index
	m.event.Edited = m.event.Edited || e.Edited
	m.event.Deleted = e.Deleted
	for _, c := range e.Changes {
		at := addressOf(c)
		if i, known := m.places[at]; known {
			m.event.Changes[i].After, m.event.Changes[i].Reason = c.After, c.Reason
			continue
		}
		m.places[at] = len(m.event.Changes)
		m.event.Changes = append(m.event.Changes, c)
	}
}

func addressOf(c registry.InstanceEvent) registry.Address {
	if c.After != nil {
		return c.After.Address
	}
	return c.Before.Address
}

// finish drops what came to nothing; false when nothing is left to tell.
func (m *merging) finish() bool {
	m.event.Changes = slices.DeleteFunc(m.event.Changes, func(c registry.InstanceEvent) bool {
		return c.Before == nil && c.After == nil
	})
	return len(m.event.Changes) > 0 || m.event.Edited
}
