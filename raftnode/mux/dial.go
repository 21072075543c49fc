package mux

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"time"
)

// Dial connects to a peer and runs the handshake, in the time of ctx, or within two
// seconds if that is less. target, unless empty, is the node (and incarnation) that
// must answer there. The error of a peer that refuses is a *RefusedError.
func (m *Mux) Dial(ctx context.Context, kind Kind, address string, target Identity) (*Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*proofTimeout)
	defer cancel()
	raw, err := m.opts.Dial(ctx, address)
	if err != nil {
		return nil, fmt.Errorf("dial peer %s: %w", address, err)
	}
	conn, err := m.introduce(ctx, raw, kind, address, target)
	if err != nil {
		raw.Close()
		return nil, fmt.Errorf("greet peer %s: %w", address, err)
	}
	return conn, nil
}

func (m *Mux) introduce(ctx context.Context, raw net.Conn, kind Kind, address string, target Identity) (*Conn, error) {
	deadline, _ := ctx.Deadline()
	raw.SetDeadline(deadline)
	// A cancelled dial must not wait for a peer that never answers.
	stop := context.AfterFunc(ctx, func() { raw.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	c := raw
	if m.opts.TLS != nil {
		secured := tls.Client(raw, m.clientTLS(address))
		if err := secured.Handshake(); err != nil {
			return nil, &tlsError{err}
		}
		c = secured
	}
	self := m.opts.Self()
	theirs, err := dialHandshake(c, m.opts.Secret, greeting{kind: kind, self: self, target: target})
	if err != nil {
		return nil, err
	}
	if err := foreign(self, theirs.self); err != nil {
		return nil, err
	}
	if err := mismatch(target, theirs.self); err != nil {
		return nil, err
	}
	if !stop() {
		return nil, ctx.Err()
	}
	conn := &Conn{Conn: c, Peer: theirs.self, mux: m, raw: raw}
	if !m.keep(conn, false) {
		return nil, net.ErrClosed
	}
	boundSilence(raw, kind)
	return conn, raw.SetDeadline(time.Time{})
}

func (m *Mux) clientTLS(address string) *tls.Config {
	config := m.opts.TLS.Clone()
	config.MinVersion = tls.VersionTLS13
	if config.ServerName == "" {
		config.ServerName, _, _ = net.SplitHostPort(address)
	}
	if len(config.Certificates) > 0 {
		// Left to itself the library shows none when another CA is asked for, and the
		// other side could not say what is wrong with it.
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			return &config.Certificates[0], nil
		}
	}
	return config
}

// mismatch tells why a node is not the wanted one; nil when it is.
func mismatch(want, got Identity) error {
	if want.Node != "" && want.Node != got.Node {
		return fmt.Errorf("node %s answers, node %s was wanted", got.Node, want.Node)
	}
	if want.Incarnation != "" && want.Incarnation != got.Incarnation {
		return fmt.Errorf("node %s answers as incarnation %s, %s was wanted", got.Node, got.Incarnation, want.Incarnation)
	}
	return nil
}

// Mismatch is the refusal of a connection that is meant for another node or another
// incarnation of this one; nil when it is meant for self or for whoever answers.
func Mismatch(target, self Identity) error { return mismatch(target, self) }
