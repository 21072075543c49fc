package push

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"time"
)

const (
	// socketBuffer is asked for in both directions; the system may give less.
	socketBuffer = 4 << 20
	// sendTimeout bounds one send: a neighbour that does not answer can fill the
	// system's buffer, and others must not wait for it.
	sendTimeout = 20 * time.Millisecond
	// maxAck is the longest acknowledgement that is read.
	maxAck = 2048
)

// socket is the UDP socket of a Pusher. It sends to both families.
type socket struct{ conn *net.UDPConn }

func newSocket(c *net.UDPConn) socket {
	// Smaller buffers work too.
	_ = c.SetWriteBuffer(socketBuffer)
	_ = c.SetReadBuffer(socketBuffer)
	return socket{c}
}

func (s socket) send(b []byte, to netip.AddrPort) error { return send(s.conn, sendTimeout, b, to) }

// datagrams is what send needs of a socket.
type datagrams interface {
	SetWriteDeadline(t time.Time) error
	WriteToUDPAddrPort(b []byte, to netip.AddrPort) (int, error)
}

// send tries twice, for as long as the limit each: the time of the first may be over before
// the system was asked at all, on a machine that let this goroutine stand still.
func send(c datagrams, limit time.Duration, b []byte, to netip.AddrPort) (err error) {
	for range 2 {
		if err = c.SetWriteDeadline(time.Now().Add(limit)); err != nil {
			return err
		}
		if _, err = c.WriteToUDPAddrPort(b, to); !errors.Is(err, os.ErrDeadlineExceeded) {
			return err
		}
	}
	return err
}

// readAcks takes acknowledgements until the socket is closed. A socket error that is
// about one peer, as some systems report them, is passed over.
func (p *Pusher) readAcks(ctx context.Context) error {
	buffer := make([]byte, maxAck)
	for broken := 0; broken < 1000; {
		n, from, err := p.socket.conn.ReadFromUDPAddrPort(buffer)
		switch {
		case err == nil:
			broken = 0
			p.acknowledged(buffer[:n], netip.AddrPortFrom(from.Addr().Unmap(), from.Port()), time.Now())
		case ctx.Err() != nil || errors.Is(err, net.ErrClosed):
			return ctx.Err()
		default:
			broken++
		}
	}
	return fmt.Errorf("push socket %s cannot be read any more", p.Addr())
}

// acknowledged takes one datagram of a client.
func (p *Pusher) acknowledged(b []byte, from netip.AddrPort, now time.Time) {
	stamp, ok := parseAck(b)
	if !ok {
		p.metrics.ackBad.Inc()
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, sub := range p.byAddr[from] {
		if w := sub.waits; !w.at.IsZero() && w.stamp == stamp {
			p.metrics.sentToAcked.Observe(now.Sub(w.at).Seconds())
			p.metrics.acked.Inc()
			sub.waits = waiting{}
			p.named.heard(from.Addr())
			return
		}
	}
	p.metrics.ackUnknown.Inc()
}
