package push

import "time"

// pace says when changes may go out: the first after a quiet time at once, and while more
// than one comes in a window they are gathered for longer and longer, from min to max.
// Changes that follow the deliveries of those before, one by one, are kept short.
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

// sent notes that some changes went out now.
func (p *pace) sent(now time.Time, changes int) {
	switch {
	case now.Sub(p.last) > 2*p.window:
		p.window = p.min
	case changes > 1:
		p.window = min(2*p.window, p.max)
	default:
		p.window = max(p.window/2, p.min)
	}
	p.last = now
}
