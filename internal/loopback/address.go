// Package loopback gives tests addresses that stay theirs.
package loopback

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
)

// Ports come from below the range of outgoing connections: one of those could take the
// port of a node that is down, where it cannot be held.
const (
	lowestPort = 12000
	portSpan   = 20000
)

var (
	mu    sync.Mutex
	given = map[int]bool{}
)

// FreeAddress is host:port on 127.0.0.1 that nobody listens on and that this process has
// not given away before. Until the test ends it is held (on Linux): connections to it are
// refused while the test does not listen there, and no FreeAddress of another process, and
// nobody who asks the system for any port, gets the same one. It fails the test when there
// is none. Safe for concurrent use.
func FreeAddress(t testing.TB) string {
	t.Helper()
	mu.Lock()
	defer mu.Unlock()
	for range 1000 {
		port := lowestPort + rand.IntN(portSpan)
		if given[port] {
			continue
		}
		release, err := hold(port)
		if err != nil {
			continue
		}
		t.Cleanup(func() {
			if err := release(); err != nil {
				t.Error(err)
			}
		})
		given[port] = true
		return fmt.Sprintf("127.0.0.1:%d", port)
	}
	t.Fatal("no free port on loopback")
	return ""
}
