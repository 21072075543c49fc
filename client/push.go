package client

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"sync"
	"time"
)

const (
	// pushAgent is what asks for pushes: servers send them to clients whose protocol they
	// know, and tell that by this name alone.
	pushAgent = "Nacos-Go-Client:v1.1.6"
	// maxPush bounds what a compressed push unpacks to.
	maxPush = 8 << 20
)

// push is the UDP socket, opened when the first service needs it.
type push struct {
	c *Client

	mu     sync.Mutex
	conn   *net.UDPConn
	ip     string
	failed bool
	ended  bool
}

func newPush(c *Client) *push { return &push{c: c} }

// wanted tells whether lists are to ask for pushes: servers are known to have no watch,
// or this client has no stream left for the service.
func (p *push) wanted() bool { return !p.c.opts.NoPush && !p.c.streams.expected() }

// ask adds to a request for a list where to push to.
func (p *push) ask(q *call) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.conn == nil && !p.open() {
		return
	}
	q.query.Set("udpPort", strconv.Itoa(p.conn.LocalAddr().(*net.UDPAddr).Port))
	q.query.Set("clientIP", p.ip)
	q.agent = pushAgent
}

// open makes the socket; the mutex is held.
func (p *push) open() bool {
	if p.failed || p.ended {
		return false
	}
	p.ip = p.c.opts.PushIP
	if p.ip == "" {
		p.ip = p.c.localIP()
	}
	conn, err := net.ListenUDP("udp", &net.UDPAddr{})
	if err != nil {
		p.failed = true
		p.c.opts.Logger.Warn("no socket for pushes, lists are asked for instead", "error", err)
		return false
	}
	p.conn = conn
	if !p.c.followers.spawn(p.c, func() { p.receive(conn) }) {
		_ = conn.Close() // nothing was sent
		p.conn = nil
		return false
	}
	return true
}

// localIP is this host's address towards the first server for which it is known.
func (c *Client) localIP() string {
	for _, s := range c.servers.all {
		if ip := localIP(s.base); ip != "" {
			return ip
		}
	}
	return ""
}

// localIP is this host's address towards a server; empty when that is not known. Nothing
// is sent for it.
func localIP(base string) string {
	u, err := url.Parse(base)
	if err != nil {
		return ""
	}
	conn, err := net.DialTimeout("udp", u.Host, time.Second)
	if err != nil {
		return ""
	}
	defer conn.Close()
	return conn.LocalAddr().(*net.UDPAddr).IP.String()
}

func (p *push) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = true
	if p.conn != nil {
		_ = p.conn.Close() // ends receive
	}
}

func (p *push) receive(conn *net.UDPConn) {
	b := make([]byte, 65536)
	for {
		n, from, err := conn.ReadFromUDPAddrPort(b)
		if err != nil {
			if p.c.ctx.Err() != nil {
				return
			}
			if !p.c.pause(p.c.ctx, retryFirst) { // an error of one datagram, such as an unreachable peer
				return
			}
			continue
		}
		p.take(conn, from, b[:n])
	}
}

// take treats a datagram as the hint that it is: anybody can send one.
func (p *push) take(conn *net.UDPConn, from netip.AddrPort, b []byte) {
	name, stamp, ack := parsePush(b)
	if ack == nil {
		return
	}
	for _, f := range p.c.followers.named(name) {
		f.hint(0, stamp, "push")
	}
	_, _ = conn.WriteToUDPAddrPort(ack, from) // without it the server sends once more
}

// parsePush reads a push and makes its acknowledgement, nil when it is none.
func parsePush(b []byte) (name ServiceName, stamp int64, ack []byte) {
	if bytes.HasPrefix(b, []byte{0x1f, 0x8b}) {
		z, err := gzip.NewReader(bytes.NewReader(b))
		if err != nil {
			return name, 0, nil
		}
		if b, err = io.ReadAll(io.LimitReader(z, maxPush)); err != nil {
			return name, 0, nil
		}
	}
	var packet struct {
		Type        string
		Data        string
		LastRefTime json.Number
	}
	if json.Unmarshal(b, &packet) != nil || packet.Type != "dom" && packet.Type != "service" {
		return name, 0, nil
	}
	var l struct {
		Name        string
		LastRefTime int64
	}
	if json.Unmarshal([]byte(packet.Data), &l) != nil {
		return name, 0, nil
	}
	name, err := ServiceName{Name: l.Name}.normal()
	if err != nil {
		return name, 0, nil
	}
	ack, err = json.Marshal(map[string]string{"type": "push-ack", "lastRefTime": packet.LastRefTime.String(), "data": ""})
	if err != nil {
		return name, 0, nil
	}
	return name, l.LastRefTime, ack
}
