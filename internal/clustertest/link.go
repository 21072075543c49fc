package clustertest

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"sync"
	"time"
)

// Fault is what a link does to the bytes that flow over it. The zero value passes them.
type Fault struct {
	// Drop lets nothing through: the sender sees a peer that is alive and mute. Bytes of a
	// connection that outlives it arrive afterwards, as TCP sends again what was lost: a
	// stream with bytes missing in the middle, which no network makes, would show faults
	// that nobody can have, such as calls that HTTP/2 takes for others.
	Drop bool
	// Reset cuts the connections that use the link and refuses new ones.
	Reset bool
	// Delay holds each chunk back, by Delay and up to Jitter more.
	Delay  time.Duration
	Jitter time.Duration
	// BytesPerSecond bounds the flow when above 0.
	BytesPerSecond int
	// OneByOne passes single bytes, as the worst network would.
	OneByOne bool
}

var errReset = errors.New("link is reset")

// link is one direction between two nodes. A change of its fault acts on connections
// that are open already.
type link struct {
	mu      sync.Mutex
	fault   Fault
	changed chan struct{}         // closed when fault is another
	conns   map[*proxied]struct{} // those with bytes on this link
}

func newLink() *link {
	return &link{conns: map[*proxied]struct{}{}, changed: make(chan struct{})}
}

func (l *link) set(f Fault) {
	l.mu.Lock()
	l.fault = f
	close(l.changed)
	l.changed = make(chan struct{})
	var cut []*proxied
	if f.Reset {
		for p := range l.conns {
			cut = append(cut, p)
		}
	}
	l.mu.Unlock()
	for _, p := range cut {
		p.close()
	}
}

// passable waits until the link lets bytes through and returns its fault then; false when
// done ends first.
func (l *link) passable(done <-chan struct{}) (Fault, bool) {
	for {
		l.mu.Lock()
		f, changed := l.fault, l.changed
		l.mu.Unlock()
		if !f.Drop {
			return f, true
		}
		select {
		case <-changed:
		case <-done:
			return f, false
		}
	}
}

func (l *link) add(p *proxied) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.conns[p] = struct{}{}
	return !l.fault.Reset
}

func (l *link) remove(p *proxied) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.conns, p)
}

// proxied is a connection from one node to another whose bytes pass through the links of
// both directions. Both of its halves are real loopback TCP.
type proxied struct {
	near, far net.Conn
	out, back *link
	once      sync.Once
	done      chan struct{}
}

// dialThrough opens a connection to addr whose bytes pass through out on their way there
// and through back on their way home. The two goroutines that carry them are counted in
// wg and end with the connection.
func dialThrough(ctx context.Context, addr string, out, back *link, wg *sync.WaitGroup) (net.Conn, error) {
	far, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	mine, near, err := loopbackPair(ctx)
	if err != nil {
		return nil, errors.Join(err, far.Close())
	}
	p := &proxied{near: near, far: far, out: out, back: back, done: make(chan struct{})}
	if open := out.add(p); !back.add(p) || !open {
		p.close()
		mine.Close()
		return nil, &net.OpError{Op: "dial", Net: "tcp", Addr: far.RemoteAddr(), Err: errReset}
	}
	wg.Go(func() { p.carry(p.far, p.near, p.out) })
	wg.Go(func() { p.carry(p.near, p.far, p.back) })
	return mine, nil
}

// loopbackPair is a TCP connection on loopback with both its ends.
func loopbackPair(ctx context.Context) (a, b net.Conn, err error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, nil, err
	}
	defer ln.Close()
	if a, err = (&net.Dialer{}).DialContext(ctx, "tcp", ln.Addr().String()); err != nil {
		return nil, nil, err
	}
	if b, err = ln.Accept(); err != nil {
		return nil, nil, errors.Join(err, a.Close())
	}
	return a, b, nil
}

func (p *proxied) close() {
	p.once.Do(func() {
		close(p.done)
		p.near.Close()
		p.far.Close()
		p.out.remove(p)
		p.back.remove(p)
	})
}

// carry moves bytes from src to dst under the link's fault until either side closes.
func (p *proxied) carry(dst, src net.Conn, l *link) {
	defer p.close()
	buf := make([]byte, 32<<10)
	for {
		n, err := src.Read(buf)
		if n > 0 {
			if f, open := l.passable(p.done); !open || !p.pass(dst, buf[:n], f) {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

func (p *proxied) pass(dst net.Conn, b []byte, f Fault) bool {
	wait := f.Delay
	if f.Jitter > 0 {
		wait += rand.N(f.Jitter)
	}
	if f.BytesPerSecond > 0 {
		wait += time.Duration(len(b)) * time.Second / time.Duration(f.BytesPerSecond)
	}
	if wait > 0 {
		select {
		case <-time.After(wait):
		case <-p.done:
			return false
		}
	}
	step := len(b)
	if f.OneByOne {
		step = 1
	}
	for len(b) > 0 {
		n, err := dst.Write(b[:min(step, len(b))])
		if err != nil {
			return false
		}
		b = b[n:]
	}
	return true
}
