package app

import (
	"net"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
)

// refusal is what a client gets that comes when all connections are taken: a clear answer
// at once, rather than a wait in the kernel's queue.
const refusal = "HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/plain;charset=UTF-8\r\n" +
	"Content-Length: 21\r\nRetry-After: 1\r\nConnection: close\r\n\r\ntoo many connections\n"

// limited is a listener that hands out at most max connections at a time and refuses the
// rest. Accept is called by one goroutine.
type limited struct {
	net.Listener
	max     int64
	open    atomic.Int64
	refused prometheus.Counter
}

// limitConnections bounds a listener. Its two metrics go to reg.
func limitConnections(l net.Listener, max int, reg prometheus.Registerer) *limited {
	lim := &limited{Listener: l, max: int64(max), refused: prometheus.NewCounter(prometheus.CounterOpts{
		Name: "rollcall_http_connections_refused_total", Help: "Client connections refused because all were taken.",
	})}
	reg.MustRegister(lim.refused, prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "rollcall_http_connections", Help: "Client connections that are open.",
	}, func() float64 { return float64(lim.open.Load()) }))
	return lim
}

// Accept waits for a connection that still fits.
func (l *limited) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if l.open.Add(1) <= l.max {
			return &counted{Conn: c, open: &l.open}, nil
		}
		l.open.Add(-1)
		l.refused.Inc()
		// A few bytes into a fresh socket's buffer: this does not block.
		c.Write([]byte(refusal))
		c.Close()
	}
}

// counted gives its place back when it is closed.
type counted struct {
	net.Conn
	once sync.Once
	open *atomic.Int64
}

// Close closes the connection and frees its place, once.
func (c *counted) Close() error {
	c.once.Do(func() { c.open.Add(-1) })
	return c.Conn.Close()
}
