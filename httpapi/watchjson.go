package httpapi

import (
	"strconv"

	"github.com/rollcall-io/rollcall/registry"
)

// watchLine is one JSON object of a watch: what happened to a service for one reason.
type watchLine struct {
	event  *registry.ServiceEvent
	reason registry.Reason
}

// watchLines takes events apart by reason, each in the order in which it first occurs. A
// change of settings is a line of its own.
func watchLines(events []registry.ServiceEvent) []watchLine {
	var lines []watchLine
	for i := range events {
		e := &events[i]
		var seen [16]bool
		for _, c := range e.Changes {
			if !seen[c.Reason&15] {
				seen[c.Reason&15] = true
				lines = append(lines, watchLine{e, c.Reason})
			}
		}
		if e.Edited && !seen[registry.ReasonEdited] {
			lines = append(lines, watchLine{e, registry.ReasonEdited})
		}
	}
	return lines
}

// append appends the line's object. more tells that the batch goes on: only with its last
// line has everything up to the index been told.
func (l watchLine) append(b []byte, more bool) []byte {
	key := l.event.Service
	b = appendInt(append(b, `{"index":`...), int64(l.event.Index))
	b = appendServiceName(append(b, ','), key)
	b = append(append(append(b, `,"reason":"`...), l.reason.String()...), '"')
	b = l.hosts(append(b, `,"added":[`...), func(c registry.InstanceEvent) *registry.Instance {
		if c.Before != nil {
			return nil
		}
		return c.After
	})
	b = l.hosts(append(b, `,"removed":[`...), func(c registry.InstanceEvent) *registry.Instance {
		if c.After != nil {
			return nil
		}
		return c.Before
	})
	b = l.hosts(append(b, `,"modified":[`...), func(c registry.InstanceEvent) *registry.Instance {
		if c.Before == nil {
			return nil
		}
		return c.After
	})
	if l.event.Deleted {
		b = append(b, `,"deleted":true`...)
	}
	if more {
		b = append(b, `,"more":true`...)
	}
	return append(b, '}')
}

// hosts appends the instances that pick takes out of the line's changes, and the end of
// the list.
func (l watchLine) hosts(b []byte, pick func(registry.InstanceEvent) *registry.Instance) []byte {
	first := true
	for _, c := range l.event.Changes {
		if c.Reason != l.reason {
			continue
		}
		if in := pick(c); in != nil {
			if !first {
				b = append(b, ',')
			}
			first = false
			b = appendRealHost(b, l.event.Service, in)
		}
	}
	return append(b, ']')
}

// appendRealHost shows an instance as it is: no protect rule, disabled ones too.
func appendRealHost(b []byte, key registry.ServiceKey, in *registry.Instance) []byte {
	return appendHost(b, key, in, in.Healthy, in.Enabled, key.Grouped)
}

func appendServiceName(b []byte, key registry.ServiceKey) []byte {
	b = appendString(append(b, `"namespace":`...), key.Namespace)
	b = appendString(append(b, `,"group":`...), key.Group())
	return appendString(append(b, `,"service":`...), key.Name())
}

// resetPart is how many services and about how many instances one object of a full state
// holds.
const (
	resetServices  = 200
	resetInstances = 1000
)

// resetParts cuts a full state into parts; there is always one.
func resetParts(services []*registry.Service) [][]*registry.Service {
	var parts [][]*registry.Service
	start, instances := 0, 0
	for i, s := range services {
		instances += s.Len()
		if i+1-start >= resetServices || instances >= resetInstances {
			parts = append(parts, services[start:i+1])
			start, instances = i+1, 0
		}
	}
	if start < len(services) || len(parts) == 0 {
		parts = append(parts, services[start:])
	}
	return parts
}

// appendReset appends one part of a full state, counted from 0.
func appendReset(b []byte, index uint64, part int, services []*registry.Service, more bool) []byte {
	b = appendInt(append(b, `{"index":`...), int64(index))
	b = strconv.AppendInt(append(b, `,"reset":true,"part":`...), int64(part), 10)
	b = append(b, `,"services":[`...)
	for i, s := range services {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendServiceName(append(b, '{'), s.Key)
		b = append(b, `,"hosts":[`...)
		for k, in := range s.Instances() {
			if k > 0 {
				b = append(b, ',')
			}
			b = appendRealHost(b, s.Key, in)
		}
		b = append(b, "]}"...)
	}
	b = append(b, ']')
	if more {
		b = append(b, `,"more":true`...)
	}
	return append(b, '}')
}

// eachObject calls do with the JSON objects of a batch in order; the bytes are good until
// it returns. It stops when do fails.
func eachObject(buffer []byte, batch registry.WatchBatch, do func(object []byte, last bool) error) error {
	if batch.Reset {
		parts := resetParts(batch.Services)
		for i, part := range parts {
			last := i == len(parts)-1
			buffer = appendReset(buffer[:0], batch.Index, i, part, !last)
			if err := do(buffer, last); err != nil {
				return err
			}
		}
		return nil
	}
	lines := watchLines(batch.Events)
	for i, line := range lines {
		last := i == len(lines)-1
		buffer = line.append(buffer[:0], !last)
		if err := do(buffer, last); err != nil {
			return err
		}
	}
	return nil
}
