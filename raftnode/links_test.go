package raftnode

import (
	"context"
	"fmt"
	"net"
	"sync"
	"time"
)

// links cuts connections between nodes in one direction, or slows them down.
type links struct {
	mu   sync.Mutex
	cut  map[[2]string]bool
	slow map[[2]string]int // bytes in a second
}

func newLinks() *links {
	return &links{cut: make(map[[2]string]bool), slow: make(map[[2]string]int)}
}

func (l *links) setSlow(from, to string, bytesPerSecond int) {
	l.mu.Lock()
	l.slow[[2]string{from, to}] = bytesPerSecond
	l.mu.Unlock()
}

// wait is how long so many bytes take on a link.
func (l *links) wait(from, to string, bytes int) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if rate := l.slow[[2]string{from, to}]; rate > 0 {
		return time.Duration(bytes) * time.Second / time.Duration(rate)
	}
	return 0
}

func (l *links) set(from, to string, cut bool) {
	l.mu.Lock()
	l.cut[[2]string{from, to}] = cut
	l.mu.Unlock()
}

// cutOff cuts all links of a node, or mends them.
func (c *testCluster) cutOff(i int, cut bool) {
	for k, other := range c.nodes {
		if k != i {
			c.links.set(c.nodes[i].opts.PeerAddr, other.opts.PeerAddr, cut)
			c.links.set(other.opts.PeerAddr, c.nodes[i].opts.PeerAddr, cut)
		}
	}
}

func (l *links) isCut(from, to string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.cut[[2]string{from, to}]
}

func (l *links) dialer(from string) func(context.Context, string) (net.Conn, error) {
	return func(ctx context.Context, to string) (net.Conn, error) {
		if l.isCut(from, to) {
			return nil, fmt.Errorf("link from %s to %s is cut", from, to)
		}
		c, err := (&net.Dialer{}).DialContext(ctx, "tcp", to)
		if err != nil {
			return nil, err
		}
		return &linkConn{Conn: c, links: l, from: from, to: to}, nil
	}
}

// linkConn fails once its link is cut.
type linkConn struct {
	net.Conn
	links    *links
	from, to string
}

func (c *linkConn) Write(b []byte) (int, error) {
	if c.links.isCut(c.from, c.to) {
		c.Conn.Close()
		return 0, fmt.Errorf("link from %s to %s is cut", c.from, c.to)
	}
	if wait := c.links.wait(c.from, c.to, len(b)); wait > 0 {
		<-time.After(wait)
	}
	return c.Conn.Write(b)
}
