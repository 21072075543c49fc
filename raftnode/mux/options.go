package mux

import (
	"context"
	"crypto/tls"
	"net"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/prometheus/client_golang/prometheus"
)

// Options make a Mux.
type Options struct {
	// Listener is the peer port. Nil keeps the port closed: the node is alone.
	Listener net.Listener
	// Advertise is the host:port under which others reach this node.
	Advertise string
	// Secret is the cluster secret. It may be empty only together with TLS.
	Secret []byte
	// TLS, if set, wraps every connection: TLS 1.3, certificates on both sides.
	TLS *tls.Config
	// Self is asked at each handshake, since the cluster id comes later than the port.
	Self func() Identity
	// Admit judges a peer that proved itself; an error refuses it and tells it why.
	// Nil admits all. It must not block.
	Admit func(kind Kind, peer, target Identity) error
	// Dial makes outgoing TCP connections; nil means a net.Dialer, which looks the name
	// up each time. Tests put faulty links here.
	Dial func(ctx context.Context, address string) (net.Conn, error)
	Log  hclog.Logger
	// Refused counts refused connections by reason; may be nil.
	Refused *prometheus.CounterVec
}

// Bounds of the port.
const (
	// proofTimeout is how long a connection may take to prove itself.
	proofTimeout = time.Second
	// maxUnproven bounds the connections that have not proven themselves.
	maxUnproven = 1024
	// maxProven bounds the accepted connections of both kinds together; a node needs a
	// dozen for each peer.
	maxProven = 512
	// acceptQueue bounds the connections that wait for their listener.
	acceptQueue = 64
)
