package probe

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/rollcall-io/rollcall/registry"
)

func TestTCP(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	tcp := func(address string, timeout time.Duration) Outcome {
		return check(t, TCP{}, address, timeout, registry.Checker{Type: registry.CheckTCP})
	}
	if got := tcp(address, patience); got != Up {
		t.Errorf("listening: outcome %d, want up", got)
	}
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	if got := tcp(address, patience); got != Refused {
		t.Errorf("closed: outcome %d, want refused", got)
	}
	if got := tcp("no-such-host.invalid:80", 500*time.Millisecond); got != Down {
		t.Errorf("no such host: outcome %d, want down", got)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if got := (TCP{}).Check(ended, address, registry.Checker{}); got != Down {
		t.Errorf("ended context: outcome %d, want down", got)
	}
}
