package nodes

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Node is one node of a Cluster, running or not. Start, Signal, Kill and Exit are for
// the test's goroutine; requests may come from any.
type Node struct {
	c      *Cluster
	number int // for the site
	// ID is the node's id, n1 and so on, HTTP and Peer are its addresses, the same across
	// restarts, and Dir is its data directory.
	ID   string
	HTTP string
	Peer string
	Dir  string

	process *process
}

// Start runs the node on its own directory.
func (n *Node) Start() {
	n.c.t.Helper()
	program, args := n.c.site.Command(n.number, n.c.binary, n.args())
	p, err := spawn(n.logFile(), program, args...)
	if err != nil {
		n.c.t.Fatalf("start %s: %v", n.ID, err)
	}
	n.process = p
}

func (n *Node) args() []string {
	args := []string{"serve", "--node-id", n.ID, "--data-dir", n.Dir, "--http-addr", n.HTTP, "--peer-addr", n.Peer}
	if len(n.c.nodes) > 1 {
		args = append(args, "--advertise", n.Peer, "--bootstrap-expect", strconv.Itoa(len(n.c.nodes)),
			"--join", n.c.Peers(), "--cluster-secret-file", n.c.SecretFile())
	}
	return append(args, n.c.args...)
}

// Running tells whether the process is there, stopped or not.
func (n *Node) Running() bool { return n.process != nil && n.process.running() }

// Signal sends a signal and does not wait for what it does.
func (n *Node) Signal(s syscall.Signal) {
	n.c.t.Helper()
	if err := n.process.signal(s); err != nil {
		n.c.t.Fatalf("signal %v to %s: %v", s, n.ID, err)
	}
}

// Kill ends the node with SIGKILL and waits until it is gone.
func (n *Node) Kill() {
	n.c.t.Helper()
	if n.process == nil {
		return
	}
	if err := n.process.kill(); err != nil {
		n.c.t.Fatalf("kill %s: %v", n.ID, err)
	}
}

// Exit waits until the process has ended by itself and returns its exit code.
func (n *Node) Exit(patience time.Duration) int {
	n.c.t.Helper()
	code, err := n.process.wait(patience)
	if err != nil {
		n.c.t.Fatalf("%s: %v", n.ID, err)
	}
	return code
}

// RSS is the memory that the node's process has in use, in bytes.
func (n *Node) RSS() (int, error) { return n.process.rss() }

// Wipe removes the data of a node that does not run.
func (n *Node) Wipe() {
	n.c.t.Helper()
	if err := os.RemoveAll(n.Dir); err != nil {
		n.c.t.Fatal(err)
	}
}

func (n *Node) logFile() string { return n.Dir + ".log" }

// Log is all that the node printed so far, over all its runs.
func (n *Node) Log() string {
	text, err := os.ReadFile(n.logFile())
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// tail is the end of the log, for the report of a failed test.
func (n *Node) tail(lines int) string {
	all := strings.Split(strings.TrimRight(n.Log(), "\n"), "\n")
	return fmt.Sprintf("--- %s, last lines of its log:\n%s", n.ID, strings.Join(all[max(0, len(all)-lines):], "\n"))
}
