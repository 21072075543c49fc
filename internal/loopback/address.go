// Package loopback gives tests addresses that stay theirs.
package loopback

import (
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
)

// Ports come from below the range of outgoing connections: one of those could take the
// port of a node that is down.
const (
	lowestPort = 12000
	portSpan   = 20000
)

var (
	mu    sync.Mutex
	given = map[int]bool{}
)

// FreeAddress is host:port on 127.0.0.1 that nobody listens on and that this process has
// not given away before. It fails the test when there is none. Safe for concurrent use.
func FreeAddress(t testing.TB) string {
	t.Helper()
	mu.Lock()
	defer mu.Unlock()
	for range 1000 {
		port := lowestPort + rand.IntN(portSpan)
		if given[port] {
			continue
		}
		address := fmt.Sprintf("127.0.0.1:%d", port)
		ln, err := net.Listen("tcp", address)
		if err != nil {
			continue
		}
		if err := ln.Close(); err != nil {
			t.Fatal(err)
		}
		given[port] = true
		return address
	}
	t.Fatal("no free port on loopback")
	return ""
}
