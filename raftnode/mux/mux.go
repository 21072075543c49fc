package mux

import (
	"container/list"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
)

// Mux owns the peer port. Its methods are safe for concurrent use.
type Mux struct {
	opts Options
	raft *listener
	rpc  *listener
	seen *sieve

	group sync.WaitGroup

	mu     sync.Mutex
	conns  map[*Conn]bool // true for accepted ones
	raw    *list.List     // unproven connections, the oldest first
	proven int
	closed bool
}

// New makes a mux and starts to accept, if there is a listener. Close ends it.
func New(opts Options) *Mux {
	if opts.Dial == nil {
		opts.Dial = func(ctx context.Context, address string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "tcp", address)
		}
	}
	if opts.Log == nil {
		opts.Log = hclog.NewNullLogger()
	}
	m := &Mux{
		opts:  opts,
		raft:  newListener(Addr(opts.Advertise)),
		rpc:   newListener(Addr(opts.Advertise)),
		seen:  newSieve(time.Minute, 256),
		conns: make(map[*Conn]bool),
		raw:   list.New(),
	}
	if opts.Listener != nil {
		m.group.Add(1)
		go m.accept()
	}
	return m
}

// Raft is the listener of Raft connections.
func (m *Mux) Raft() net.Listener { return m.raft }

// RPC is the listener of calls between nodes.
func (m *Mux) RPC() net.Listener { return m.rpc }

// Close closes the port and every connection, accepted and dialled, and waits for the
// mux's own goroutines. It may be called more than once.
func (m *Mux) Close() error {
	m.mu.Lock()
	m.closed = true
	conns := make([]net.Conn, 0, len(m.conns)+m.raw.Len())
	for c := range m.conns {
		// The TCP connection first: TLS says goodbye, and waits for a peer that is stuck.
		conns = append(conns, c.raw, c)
	}
	for e := m.raw.Front(); e != nil; e = e.Next() {
		conns = append(conns, e.Value.(net.Conn))
	}
	m.mu.Unlock()
	var err error
	if m.opts.Listener != nil {
		if err = m.opts.Listener.Close(); errors.Is(err, net.ErrClosed) {
			err = nil
		}
	}
	m.raft.Close()
	m.rpc.Close()
	for _, c := range conns {
		c.Close()
	}
	m.group.Wait()
	return err
}

func (m *Mux) accept() {
	defer m.group.Done()
	for {
		c, err := m.opts.Listener.Accept()
		if err != nil {
			if errors.Is(err, net.ErrClosed) {
				return
			}
			// Out of file descriptors, most likely: give others the time to close some.
			m.refuse("accept", nil, err)
			time.Sleep(20 * time.Millisecond)
			continue
		}
		held, oldest := m.hold(c)
		if held == nil {
			return
		}
		if oldest != nil {
			m.refuse("too_many_unproven", oldest, errors.New("too many unproven connections"))
			oldest.Close()
		}
		go m.welcome(c, held)
	}
}

// hold remembers an unproven connection and counts its goroutine, unless the mux is
// closed already; then it closes the connection. When there are too many the oldest must
// make room: a peer proves itself in a moment, so that a flood of silent connections
// does not keep it out.
func (m *Mux) hold(c net.Conn) (held *list.Element, oldest net.Conn) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		c.Close()
		return nil, nil
	}
	if m.raw.Len() >= maxUnproven {
		oldest = m.raw.Remove(m.raw.Front()).(net.Conn)
	}
	m.group.Add(1)
	return m.raw.PushBack(c), oldest
}

func (m *Mux) release(held *list.Element) {
	m.mu.Lock()
	m.raw.Remove(held)
	m.mu.Unlock()
}

// welcome lets one accepted connection prove itself and hands it over.
func (m *Mux) welcome(raw net.Conn, held *list.Element) {
	defer m.group.Done()
	peer, c, err := m.prove(raw)
	m.release(held)
	if err != nil {
		m.refuse(reasonOf(err), raw, err)
		raw.Close()
		return
	}
	conn := &Conn{Conn: c, Peer: peer.self, mux: m, raw: raw}
	if !m.keep(conn, true) {
		m.refuse("too_many", raw, errors.New("too many connections"))
		raw.Close()
		return
	}
	boundSilence(raw, peer.kind)
	to := m.rpc
	if peer.kind == Raft {
		to = m.raft
	}
	if !to.offer(conn) {
		m.refuse("queue_full", raw, errors.New("nobody takes the connection"))
		conn.Close()
	}
}

func (m *Mux) prove(raw net.Conn) (greeting, net.Conn, error) {
	raw.SetDeadline(time.Now().Add(proofTimeout))
	c := raw
	if m.opts.TLS != nil {
		config := m.opts.TLS.Clone()
		config.MinVersion = tls.VersionTLS13
		config.ClientAuth = tls.RequireAndVerifyClientCert
		secured := tls.Server(raw, config)
		if err := secured.Handshake(); err != nil {
			return greeting{}, nil, &tlsError{err}
		}
		c = secured
	}
	peer, err := acceptHandshake(c, m.opts.Secret, m.judge)
	if err != nil {
		return peer, nil, err
	}
	return peer, c, raw.SetDeadline(time.Time{})
}

// judge answers a proven greeting.
func (m *Mux) judge(theirs greeting) greeting {
	mine := greeting{kind: theirs.kind, self: m.opts.Self()}
	if err := foreign(mine.self, theirs.self); err != nil {
		mine.refusal = err.Error()
		return mine
	}
	if m.opts.Admit != nil {
		if err := m.opts.Admit(theirs.kind, theirs.self, theirs.target); err != nil {
			mine.refusal = err.Error()
		}
	}
	return mine
}

// foreign tells why two nodes cannot be of one cluster; nil when they can.
func foreign(a, b Identity) error {
	if a.Cluster != "" && b.Cluster != "" && a.Cluster != b.Cluster {
		return fmt.Errorf("node %s is of cluster %s, node %s of cluster %s", a.Node, a.Cluster, b.Node, b.Cluster)
	}
	return nil
}

// keep remembers a proven connection; false when the mux is closed or full.
func (m *Mux) keep(c *Conn, accepted bool) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed || accepted && m.proven >= maxProven {
		return false
	}
	if accepted {
		m.proven++
	}
	m.conns[c] = accepted
	return true
}

func (m *Mux) forget(c *Conn) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.conns[c] {
		m.proven--
	}
	delete(m.conns, c)
}

// refuse counts a refused connection, and logs it unless the same was logged lately.
func (m *Mux) refuse(reason string, c net.Conn, err error) {
	if m.opts.Refused != nil {
		m.opts.Refused.WithLabelValues(reason).Inc()
	}
	from := "?"
	if c != nil {
		from, _, _ = net.SplitHostPort(c.RemoteAddr().String())
	}
	if m.seen.pass(reason + " " + from) {
		m.opts.Log.Warn("peer connection refused", "from", from, "reason", reason, "err", err)
	}
}

// reasonOf is the metric label of a failed handshake.
func reasonOf(err error) string {
	var refused *RefusedError
	var timeout net.Error
	var secured *tlsError
	switch {
	case errors.As(err, &refused):
		return "not_admitted"
	case errors.Is(err, errMagic):
		return "magic"
	case errors.Is(err, errSecret):
		return "secret"
	case errors.Is(err, errGreeting):
		return "greeting"
	case errors.Is(err, os.ErrDeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return "timeout"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed):
		return "closed"
	case errors.As(err, &secured):
		return secured.reason()
	}
	return "other"
}
