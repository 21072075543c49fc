package clustertest

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// watchLeaks notes the goroutines and descriptors that there are, and fails the test when
// it leaves more behind, after everything that it cleans up from here on. Others of the
// process's tests must not run at the same time.
func watchLeaks(t testing.TB) {
	t.Helper()
	// The runtime opens its poller with the first connection and keeps it.
	if l, err := net.Listen("tcp", "127.0.0.1:0"); err == nil {
		l.Close()
	}
	goroutines, before := goleak.IgnoreCurrent(), openDescriptors()
	t.Cleanup(func() {
		if t.Failed() {
			return // what a test left that gave up says nothing
		}
		deadline := time.Now().Add(patience)
		for {
			err := goleak.Find(goroutines)
			if err == nil {
				err = grown(before, openDescriptors())
			}
			if err == nil {
				return
			}
			if time.Now().After(deadline) {
				t.Errorf("left behind: %v", err)
				return
			}
			time.Sleep(20 * time.Millisecond)
		}
	})
}

// grown says which kinds of descriptors there are more of.
func grown(before, now map[string]int) error {
	var more []string
	for kind, n := range now {
		if n > before[kind] {
			more = append(more, fmt.Sprintf("%d %s, there were %d", n, kind, before[kind]))
		}
	}
	if more != nil {
		return fmt.Errorf("open descriptors: %s", strings.Join(more, "; "))
	}
	return nil
}

// openDescriptors counts this process's open descriptors by their kind: socket, pipe and so
// on, or the name of a file. It is empty where the system does not tell (other than Linux).
func openDescriptors() map[string]int {
	const dir = "/proc/self/fd"
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	kinds := map[string]int{}
	for _, e := range entries {
		to, err := os.Readlink(filepath.Join(dir, e.Name()))
		if err != nil {
			continue // the one that the directory was read by
		}
		kind, _, numbered := strings.Cut(to, ":[")
		if !numbered {
			kind = filepath.Base(to)
		}
		kinds[kind]++
	}
	return kinds
}
