//go:build linux

package netns

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

const (
	// subnet is private to each network, see the package's comment.
	subnet = "10.223.0."
	// hubAddress is the bridge's own, from which clients call.
	hubAddress = subnet + "254"
	httpPort   = "8000"
	peerPort   = "7000"
	// hostsRoot holds, for each namespace, the files that `ip netns exec` lays over /etc.
	hostsRoot = "/etc/netns"
)

// made counts the networks of this process, for their names.
var made atomic.Int64

// Network is a bridge and the nodes on it, numbered from 0. Its methods are for the test's
// goroutine, except Dial; those that change the network end the test when they cannot.
type Network struct {
	t      testing.TB
	prefix string
	// used is the last number of an address that was given away.
	used int
	slow *shaper

	mu    sync.Mutex // for Dial; the test's goroutine alone changes hosts
	hosts []host
}

// host is where one node runs.
type host struct {
	space   string // its namespace
	name    string // by which its peers call it
	address string
}

// New makes a network for n nodes, whose names are n1 and so on. It is removed when the
// test ends, however it does, and with it all processes that still run there. The test is
// skipped where the rights, the commands or the kernel's parts are not there.
func New(t testing.TB, n int) *Network {
	t.Helper()
	if why := missing(); why != "" {
		t.Skipf("a network for each node needs %s", why)
	}
	sweep(abandoned)
	w := &Network{t: t, prefix: fmt.Sprintf("%s%d-%d-", mark, os.Getpid(), made.Add(1))}
	t.Cleanup(w.close)
	hub := w.hub()
	if err := allowed(hub); err != nil {
		t.Skipf("a network for each node needs the right to make one, a bridge and iptables: %v", err)
	}
	w.must(ip("-n", hub, "addr", "add", hubAddress+"/24", "dev", "bridge"))
	w.must(ip("-n", hub, "link", "set", "bridge", "up"))
	for i := range n {
		w.attach(i)
	}
	w.writeHosts()
	return w
}

// attach makes the namespace of node i and its link to the bridge.
func (w *Network) attach(i int) {
	w.t.Helper()
	h := host{space: fmt.Sprintf("%sn%d", w.prefix, i+1), name: fmt.Sprintf("n%d", i+1), address: w.unused()}
	w.hosts = append(w.hosts, h)
	leg := fmt.Sprintf("leg%d", i+1)
	w.must(ip("netns", "add", h.space))
	w.must(ip("-n", w.hub(), "link", "add", leg, "type", "veth", "peer", "name", "eth0", "netns", h.space))
	w.must(ip("-n", w.hub(), "link", "set", leg, "master", "bridge", "up"))
	w.must(ip("-n", h.space, "link", "set", "lo", "up"))
	w.must(ip("-n", h.space, "link", "set", "eth0", "up"))
	w.must(ip("-n", h.space, "addr", "add", h.address+"/24", "dev", "eth0"))
}

func (w *Network) hub() string { return w.prefix + "hub" }

func (w *Network) unused() string {
	w.used++
	return fmt.Sprint(subnet, w.used)
}

// writeHosts tells all nodes the addresses of all names. The files are written in place: a
// running process has the file itself laid over its /etc/hosts.
func (w *Network) writeHosts() {
	w.t.Helper()
	var text strings.Builder
	fmt.Fprintln(&text, "127.0.0.1 localhost")
	for _, h := range w.hosts {
		fmt.Fprintln(&text, h.address, h.name)
	}
	for _, h := range w.hosts {
		dir := filepath.Join(hostsRoot, h.space)
		w.must(os.MkdirAll(dir, 0o755))
		w.must(os.WriteFile(filepath.Join(dir, "hosts"), []byte(text.String()), 0o644))
	}
}

// Move gives node i another address of the range, under a process that may run: packets to
// and from the old one come to nothing. All nodes find its name at the new one. A cut or
// a shape that was made before does not follow it.
func (w *Network) Move(i int) {
	w.t.Helper()
	h, address := w.hosts[i], w.unused()
	w.must(ip("-n", h.space, "addr", "del", h.address+"/24", "dev", "eth0"))
	w.must(ip("-n", h.space, "addr", "add", address+"/24", "dev", "eth0"))
	w.mu.Lock()
	w.hosts[i].address = address
	w.mu.Unlock()
	w.writeHosts()
}

// Rename gives node i another name; its peers do not find it by the old one.
func (w *Network) Rename(i int, name string) {
	w.t.Helper()
	w.hosts[i].name = name
	w.writeHosts()
}

// Addresses are those of node i. That for clients stays, whatever happens to the node: Dial
// knows where it is. That for its peers holds its present name.
func (w *Network) Addresses(i int) (http, peer string) {
	return fmt.Sprintf("n%d:%s", i+1, httpPort), w.hosts[i].name + ":" + peerPort
}

// Dial connects from where the clients are. Safe for concurrent use.
func (w *Network) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	name, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	i, err := strconv.Atoi(strings.TrimPrefix(name, "n"))
	if err != nil || i < 1 || i > len(w.hosts) {
		return nil, fmt.Errorf("no node %s", name)
	}
	w.mu.Lock()
	there := w.hosts[i-1].address
	w.mu.Unlock()
	return dial(ctx, w.hub(), network, net.JoinHostPort(there, port))
}

// Command is the command line that runs a program where node i is. The process is the
// program's own: signals reach it.
func (w *Network) Command(i int, program string, args []string) (string, []string) {
	return "ip", append([]string{"netns", "exec", w.hosts[i].space, program}, args...)
}

func (w *Network) close() {
	if w.slow != nil {
		w.slow.close()
	}
	sweep(func(space string) bool { return strings.HasPrefix(space, w.prefix) })
}

func (w *Network) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}
