package e2e

import (
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/rollcall-io/rollcall/test/e2e/nodes"
)

// binary is the path of the rollcall that all tests run.
var binary string

// long asks for the rounds that take minutes. The environment is read inside a test, or the
// go command would show a cached result of the short form.
func long() bool { return os.Getenv("ROLLCALL_E2E") == "long" }

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "rollcall-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	if binary, err = nodes.Build(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	// Tests with partitions run side by side, on networks of their own: they wait more than
	// they work. -parallel says otherwise.
	if err := flag.Set("test.parallel", "3"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	code := m.Run()
	if err := goleak.Find(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

// either is the first value in the short form, the second in the long one.
func either[T any](short, whenLong T) T {
	if long() {
		return whenLong
	}
	return short
}

// block makes n instances of one service, their ports from first up.
func block(service, ip string, first, n int, like nodes.Instance) []nodes.Instance {
	all := make([]nodes.Instance, n)
	for i := range all {
		all[i] = like
		all[i].Service, all[i].IP, all[i].Port = service, ip, first+i
	}
	return all
}

// brief are timeouts that leave a beating client room on a busy machine, and still let a
// test see an expiry.
var brief = nodes.Instance{Interval: time.Second, Timeout: 4 * time.Second, Delete: 6 * time.Second}

// unhurried are arguments of nodes that elect nobody because a busy machine stands still for
// a moment: for tests in which an election is a fault.
var unhurried = []string{"--election-timeout", "2s"}

// pass lets time go by in which something must not happen.
func pass(d time.Duration) { <-time.After(d) }

// checkAcked fails the test when a node does not list what was acknowledged. It returns how
// many that are.
func checkAcked(t *testing.T, c *nodes.Cluster, acked map[string][]string) int {
	t.Helper()
	total := 0
	for service, want := range acked {
		total += len(want)
		for _, n := range c.Nodes() {
			missing := notListed(n, service, want)
			for deadline := time.Now().Add(30 * time.Second); missing != "" && time.Now().Before(deadline); missing = notListed(n, service, want) {
				pass(20 * time.Millisecond)
			}
			if missing != "" {
				t.Fatalf("%s lost %s of %s", n.ID, missing, service)
			}
		}
	}
	return total
}

// notListed is one of the instances that a node does not list, or that it does not answer.
func notListed(n *nodes.Node, service string, want []string) string {
	listed := n.Keys(service)
	if listed == nil {
		return "everything (it does not answer)"
	}
	for _, key := range want {
		if _, found := listed[key]; !found {
			return key
		}
	}
	return ""
}
