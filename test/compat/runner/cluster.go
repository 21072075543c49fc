package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	nodeCount   = 3
	readyWithin = 30 * time.Second
	stopWithin  = 15 * time.Second
	pollStep    = 20 * time.Millisecond
)

var client = &http.Client{Timeout: 3 * time.Second}

// node is one rollcall process. The cluster's lock guards cmd and ended.
type node struct {
	id, http, peer, dir string
	cmd                 *exec.Cmd
	ended               chan struct{} // closed when the process is gone
}

// cluster is three node processes on loopback. Its methods may be called at once.
type cluster struct {
	binary, dir string

	mu    sync.Mutex
	nodes []*node
}

// newCluster prepares the nodes below dir; none runs yet.
func newCluster(binary, dir string) (*cluster, error) {
	c := &cluster{binary: binary, dir: dir}
	taken := make(map[string]bool)
	for i := range nodeCount {
		n := &node{id: fmt.Sprintf("n%d", i+1), dir: filepath.Join(dir, fmt.Sprintf("n%d", i+1))}
		for _, addr := range []*string{&n.http, &n.peer} {
			var err error
			if *addr, err = freeAddress(taken); err != nil {
				return nil, err
			}
		}
		c.nodes = append(c.nodes, n)
	}
	return c, os.WriteFile(filepath.Join(dir, "secret"), []byte("a secret for tests only"), 0o600)
}

// freeAddress picks a port below the range of outgoing connections, any of which could
// take the port of a node that is down.
func freeAddress(taken map[string]bool) (string, error) {
	for range 1000 {
		addr := fmt.Sprintf("127.0.0.1:%d", 12000+rand.IntN(20000))
		ln, err := net.Listen("tcp", addr)
		if err != nil || taken[addr] {
			continue
		}
		taken[addr] = true
		return addr, ln.Close()
	}
	return "", errors.New("no free port on loopback")
}

func (c *cluster) find(id string) (*node, error) {
	for _, n := range c.nodes {
		if n.id == id {
			return n, nil
		}
	}
	return nil, fmt.Errorf("no node %q", id)
}

// servers are the client addresses of all nodes, comma separated.
func (c *cluster) servers() string {
	var all []string
	for _, n := range c.nodes {
		all = append(all, n.http)
	}
	return strings.Join(all, ",")
}

// start runs a node that does not run; ready waits for it.
func (c *cluster) start(n *node) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n.cmd != nil {
		return nil
	}
	var peers []string
	for _, other := range c.nodes {
		peers = append(peers, other.peer)
	}
	logFile, err := os.OpenFile(n.dir+".log", os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer logFile.Close()
	cmd := exec.Command(c.binary, "serve", "--node-id", n.id, "--data-dir", n.dir,
		"--http-addr", n.http, "--peer-addr", n.peer, "--advertise", n.peer,
		"--bootstrap-expect", fmt.Sprint(nodeCount), "--join", strings.Join(peers, ","),
		"--cluster-secret-file", filepath.Join(c.dir, "secret"))
	cmd.Stdout, cmd.Stderr = logFile, logFile
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan struct{})
	n.cmd, n.ended = cmd, ended
	go func() { // ends with the process, which stop and close wait for
		_ = cmd.Wait()
		close(ended)
	}()
	return nil
}

// ready waits until a node answers its readiness probe.
func (c *cluster) ready(n *node) error {
	return poll(readyWithin, n.id+" is not ready", func() bool {
		resp, err := client.Get("http://" + n.http + "/readyz")
		if err != nil {
			return false
		}
		resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	})
}

// startAll runs all nodes and waits until they are ready.
func (c *cluster) startAll() error {
	for _, n := range c.nodes {
		if err := c.start(n); err != nil {
			return err
		}
	}
	for _, n := range c.nodes {
		if err := c.ready(n); err != nil {
			return err
		}
	}
	return nil
}

// stop sends a signal and waits until the process is gone.
func (c *cluster) stop(n *node, sig syscall.Signal) error {
	c.mu.Lock()
	cmd, ended := n.cmd, n.ended
	n.cmd = nil
	c.mu.Unlock()
	if cmd == nil {
		return nil
	}
	if err := cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	select {
	case <-ended:
		return nil
	case <-time.After(stopWithin):
		_ = cmd.Process.Kill()
		<-ended
		return fmt.Errorf("%s did not stop within %s", n.id, stopWithin)
	}
}

// leader waits until a node names a leader that runs.
func (c *cluster) leader() (*node, error) {
	var found *node
	err := poll(readyWithin, "no leader", func() bool {
		for _, n := range c.nodes {
			resp, err := client.Get("http://" + n.http + "/nacos/v1/ns/instance/list?serviceName=any")
			if err != nil {
				continue
			}
			resp.Body.Close()
			l, err := c.find(resp.Header.Get("X-Rollcall-Leader"))
			if err == nil && c.running(l) {
				found = l
				return true
			}
		}
		return false
	})
	return found, err
}

func (c *cluster) running(n *node) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n.cmd == nil {
		return false
	}
	select {
	case <-n.ended:
		return false
	default:
		return true
	}
}

// close kills all nodes.
func (c *cluster) close() {
	for _, n := range c.nodes {
		_ = c.stop(n, syscall.SIGKILL)
	}
}

func poll(within time.Duration, otherwise string, cond func() bool) error {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	tick := time.NewTicker(pollStep)
	defer tick.Stop()
	for !cond() {
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s after %s", otherwise, within)
		case <-tick.C:
		}
	}
	return nil
}
