package push

import "time"

// pace says when changes may go out: the first after a quiet time at once, and while
// they go on they are gathered for longer and longer, from min to max.
type pace struct {
	min, max time.Duration
	window   time.Duration
	last     time.Time
}

// due is when a change that is there now may go out.
func (p *pace) due(now time.Time) time.Time {
	if next := p.last.Add(p.window); next.After(now) {
		return next
	}
	return now
}

// sent notes that something went out now.
func (p *pace) sent(now time.Time) {
	if p.window > 0 && now.Sub(p.last) <= 2*p.window {
		p.window = min(2*p.window, p.max)
	} else {
		p.window = p.min
	}
	p.last = now
}
