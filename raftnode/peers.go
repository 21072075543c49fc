package raftnode

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"

	"github.com/rollcall-io/rollcall/internal/wire/peerpb"
	"github.com/rollcall-io/rollcall/raftnode/mux"
)

// maxMessage bounds one call between nodes: a batch of commands with room to spare.
const maxMessage = 16 << 20

// peers keeps one connection for calls to each address.
type peers struct {
	mux *mux.Mux

	mu     sync.Mutex
	conns  map[string]*grpc.ClientConn
	closed bool
}

func newPeers(m *mux.Mux) *peers { return &peers{mux: m, conns: make(map[string]*grpc.ClientConn)} }

var errPeersClosed = errors.New("calls to peers are closed")

func (p *peers) conn(address string) (*grpc.ClientConn, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, errPeersClosed
	}
	if c := p.conns[address]; c != nil {
		return c, nil
	}
	c, err := grpc.NewClient("passthrough:///"+address,
		grpc.WithTransportCredentials(insecure.NewCredentials()), // the mux secures the connection
		grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
			c, err := p.mux.Dial(ctx, mux.RPC, address, mux.Identity{})
			if err != nil {
				return nil, err
			}
			return c, nil
		}),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 50 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 500 * time.Millisecond},
			MinConnectTimeout: 2 * time.Second,
		}),
		// A call whose outcome is unknown is never made again behind our back.
		grpc.WithDisableRetry(),
		grpc.WithDisableServiceConfig(),
		grpc.WithIdleTimeout(0),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage)),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 10 * time.Second, Timeout: 3 * time.Second}),
	)
	if err != nil {
		return nil, err
	}
	p.conns[address] = c
	return c, nil
}

// client is for calls that may be repeated: it fails at once when there is no connection.
func (p *peers) client(address string) (peerpb.PeerClient, error) {
	c, err := p.conn(address)
	if err != nil {
		return nil, err
	}
	c.Connect()
	return peerpb.NewPeerClient(c), nil
}

// connected waits until there is a connection. Its error therefore means that nothing
// was sent, which a failed call alone does not tell.
func (p *peers) connected(ctx context.Context, address string) (peerpb.PeerClient, error) {
	c, err := p.conn(address)
	if err != nil {
		return nil, err
	}
	for {
		state := c.GetState()
		if state == connectivity.Ready {
			return peerpb.NewPeerClient(c), nil
		}
		if state == connectivity.Idle {
			c.Connect()
		}
		if !c.WaitForStateChange(ctx, state) {
			return nil, ctx.Err()
		}
	}
}

func (p *peers) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for _, c := range p.conns {
		c.Close()
	}
	p.conns = nil
}
