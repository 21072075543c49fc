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
	check := func(address string) Outcome {
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		return TCP{}.Check(ctx, address, registry.Checker{Type: registry.CheckTCP})
	}
	if got := check(address); got != Up {
		t.Errorf("listening: outcome %d, want up", got)
	}
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	if got := check(address); got != Refused {
		t.Errorf("closed: outcome %d, want refused", got)
	}
	if got := check("no-such-host.invalid:80"); got != Down {
		t.Errorf("no such host: outcome %d, want down", got)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if got := (TCP{}).Check(ended, address, registry.Checker{}); got != Down {
		t.Errorf("ended context: outcome %d, want down", got)
	}
}
