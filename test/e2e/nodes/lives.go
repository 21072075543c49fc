package nodes

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// Lives are instances whose clients note what was acknowledged: nothing else proves that
// one is alive.
type Lives struct {
	b *background

	mu     sync.Mutex
	lives  []*life
	sights []string
}

// life is one instance. proven is when the newest acknowledged beat was sent; gap is the
// longest time between two of them. Once that reached the timeout it may be called
// unhealthy, here sooner, there later, and is no witness any more.
type life struct {
	in     Instance
	proven time.Time
	gap    time.Duration
}

// KeepAlive beats each instance at its interval as a client does: through the node that
// took its last beat, or else the next of those that via names for it; it registers again
// where the instance is not known. From when all nodes list them, it looks at their service
// on every node. The instances are of one service, with timeouts, and registered.
func (c *Cluster) KeepAlive(via func(instance int) []*Node, instances ...Instance) *Lives {
	c.t.Helper()
	l := &Lives{b: newBackground(c.t)}
	for i, in := range instances {
		one, turn, through := &life{in: in, proven: time.Now()}, 0, via(i)
		l.lives = append(l.lives, one)
		l.b.every(in.Interval, func(ctx context.Context) {
			for range through {
				sent := time.Now()
				if through[turn%len(through)].sustain(ctx, in) {
					l.prove(one, sent)
					return
				}
				turn++
			}
		})
	}
	for _, n := range c.nodes {
		c.Until("instances of "+instances[0].Service+" on "+n.ID, func() bool {
			keys := n.Keys(instances[0].Service)
			for _, in := range instances {
				if !keys[in.Key()] {
					return false
				}
			}
			return true
		})
		l.b.every(100*time.Millisecond, func(context.Context) { l.look(n, instances[0].Service) })
	}
	return l
}

// sustain is a beat, or a registration where the instance is not known.
func (n *Node) sustain(ctx context.Context, in Instance) bool {
	switch n.beat(ctx, in) {
	case beatTaken:
		return true
	case beatUnknown:
		a, err := n.Register(in)
		return err == nil && a.OK()
	}
	return false
}

func (l *Lives) prove(one *life, sent time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	one.gap = max(one.gap, sent.Sub(one.proven))
	one.proven = sent
}

// look notes instances that a node calls unhealthy or does not list, and that were proven
// to live inside their timeout until it had answered.
func (l *Lives) look(n *Node, service string) {
	asked := time.Now()
	l.mu.Lock()
	var alive []life // as of now
	for _, one := range l.lives {
		if one.gap < one.in.Timeout {
			alive = append(alive, *one)
		}
	}
	l.mu.Unlock()
	keys := n.Keys(service)
	if keys == nil {
		return // down or not ready
	}
	answered := time.Now() // the node may have looked as late as this
	for _, one := range alive {
		in := one.in
		if healthy, listed := keys[in.Key()]; !healthy && answered.Sub(one.proven) < in.Timeout {
			l.mu.Lock()
			l.sights = append(l.sights, fmt.Sprintf("%s: %s shows %s, listed %v, healthy %v", asked.Format("15:04:05.000"), n.ID, in.Key(), listed, healthy))
			l.mu.Unlock()
		}
	}
}

// Stop ends the clients and waits for them. It returns what was seen of instances that
// were alive, and the longest time that one had no beat acknowledged.
func (l *Lives) Stop() (sights []string, gap time.Duration) {
	l.b.stop()
	for _, one := range l.lives {
		gap = max(gap, one.gap, time.Since(one.proven))
	}
	return l.sights, gap
}
