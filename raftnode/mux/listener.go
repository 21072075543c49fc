package mux

import (
	"net"
	"sync"
)

// Conn is a proven connection.
type Conn struct {
	net.Conn
	// Peer is how the other side named itself.
	Peer Identity

	mux  *Mux
	raw  net.Conn // under TLS, if there is any
	once sync.Once
}

// Close closes the connection and forgets it.
func (c *Conn) Close() error {
	c.once.Do(func() { c.mux.forget(c) })
	return c.Conn.Close()
}

// listener hands out the proven connections of one kind.
type listener struct {
	queue  chan *Conn
	addr   Addr
	closed chan struct{}
	once   sync.Once
}

func newListener(addr Addr) *listener {
	return &listener{queue: make(chan *Conn, acceptQueue), addr: addr, closed: make(chan struct{})}
}

// Accept waits for the next proven connection.
func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.queue:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// offer hands a connection over; false when nobody takes it.
func (l *listener) offer(c *Conn) bool {
	select {
	case <-l.closed:
		return false
	default:
	}
	select {
	case l.queue <- c:
		return true
	default:
		return false
	}
}

// Close ends Accept. The port itself belongs to the Mux.
func (l *listener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

// Addr is the advertised address.
func (l *listener) Addr() net.Addr { return l.addr }

// Addr is an advertised host:port, kept as text: names stay names.
type Addr string

// Network is tcp.
func (Addr) Network() string { return "tcp" }

// String is the host:port.
func (a Addr) String() string { return string(a) }
