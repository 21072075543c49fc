package probe

import (
	"context"
	"net"

	"github.com/rollcall-io/rollcall/registry"
)

// Outcome is the result of one probe.
type Outcome uint8

// The outcomes. Up and Down count only when several come in a row; Refused, a clear no
// of the host, counts at once (Nacos 1.4.7, TcpSuperSenseProcessor).
const (
	Up      Outcome = 1
	Down    Outcome = 2
	Refused Outcome = 3
)

// Checker makes the probes of one type. Check must return soon after ctx ends; it is
// called from many goroutines at once.
type Checker interface {
	Check(ctx context.Context, address string, settings registry.Checker) Outcome
}

// TCP succeeds when a connection is made before ctx ends.
type TCP struct{}

// Check connects to address, host:port, and closes the connection at once.
func (TCP) Check(ctx context.Context, address string, _ registry.Checker) Outcome {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", address)
	if err != nil {
		return failure(err)
	}
	_ = conn.Close() // nothing was sent, so nothing can be lost
	return Up
}
