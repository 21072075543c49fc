package nodes

import (
	"context"
	"net"
	"testing"

	"github.com/rollcall-io/rollcall/internal/loopback"
)

// Site is where the nodes of a cluster run, numbered from 0.
type Site interface {
	// Addresses are those of a node, as clients and as its peers call it.
	Addresses(node int) (http, peer string)
	// Command is the command line that runs a program where a node is.
	Command(node int, program string, args []string) (string, []string)
	// Dial connects to a node as clients do. Safe for concurrent use.
	Dial(ctx context.Context, network, address string) (net.Conn, error)
}

// onLoopback is the site of nodes that share this host.
type onLoopback struct{ t testing.TB }

func (s onLoopback) Addresses(int) (http, peer string) {
	s.t.Helper()
	return loopback.FreeAddress(s.t), loopback.FreeAddress(s.t)
}

func (onLoopback) Command(_ int, program string, args []string) (string, []string) {
	return program, args
}

func (onLoopback) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	var d net.Dialer
	return d.DialContext(ctx, network, address)
}
