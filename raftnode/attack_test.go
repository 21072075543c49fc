package raftnode

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/rollcall-io/rollcall/internal/wire/peerpb"
	"github.com/rollcall-io/rollcall/raftnode/mux"
)

// attacker is somebody with a way to the peer port.
type attacker struct {
	t      *testing.T
	target string
	group  sync.WaitGroup
	opened []net.Conn
}

func (a *attacker) dial() net.Conn {
	c, err := net.Dial("tcp", a.target)
	if err != nil {
		a.t.Error(err)
		return nil
	}
	a.opened = append(a.opened, c)
	return c
}

func (a *attacker) close() {
	for _, c := range a.opened {
		c.Close()
	}
	a.group.Wait()
}

// silent opens connections and says nothing.
func (a *attacker) silent(n int) {
	for range n {
		a.dial()
	}
}

// loris sends a byte now and then, each in time by itself.
func (a *attacker) loris(n int) {
	hello := append([]byte("rcp1"), bytes.Repeat([]byte{7}, 200)...)
	for range n {
		c := a.dial()
		if c == nil {
			return
		}
		a.group.Go(func() {
			began := time.Now()
			for i := 0; ; i++ {
				if _, err := c.Write(hello[i%len(hello):][:1]); err != nil {
					return
				}
				if time.Since(began) > 5*time.Second {
					a.t.Error("a slow connection lives for 5s")
					return
				}
				<-time.After(50 * time.Millisecond)
			}
		})
	}
}

// as dials with a secret and under a name and tells what came of it.
func (a *attacker) as(secret string, self, target mux.Identity, kind mux.Kind) (*mux.Conn, error) {
	m := mux.New(mux.Options{Secret: []byte(secret), Self: func() mux.Identity { return self }})
	c, err := m.Dial(context.Background(), kind, a.target, target)
	if err == nil {
		a.opened = append(a.opened, c)
	}
	return c, err
}

// taped notes what is written to a connection.
type taped struct {
	net.Conn
	tape bytes.Buffer
}

func (c *taped) Write(b []byte) (int, error) {
	c.tape.Write(b)
	return c.Conn.Write(b)
}

// replay lets a node's own handshake be repeated word for word.
func (a *attacker) replay(self mux.Identity, n int) {
	var tape *taped
	m := mux.New(mux.Options{
		Secret: []byte("a-secret-of-the-test"), Self: func() mux.Identity { return self },
		Dial: func(ctx context.Context, address string) (net.Conn, error) {
			c, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
			tape = &taped{Conn: c}
			return tape, err
		},
	})
	c, err := m.Dial(context.Background(), mux.RPC, a.target, mux.Identity{})
	if err != nil {
		a.t.Error(err)
		return
	}
	a.opened = append(a.opened, c)
	for range n {
		c := a.dial()
		c.Write(tape.tape.Bytes())
		c.SetReadDeadline(time.Now().Add(3 * time.Second))
		// The accepting side's nonce, and nothing after it.
		if got, _ := io.ReadAll(c); len(got) > 32 {
			a.t.Errorf("a replayed handshake is answered with %d bytes", len(got))
		}
	}
}

// frames are what a node that went mad may send after a right handshake.
func (a *attacker) frames(node *testNode) {
	self := mux.Identity{Node: "mad", Incarnation: "1", Cluster: node.clusterID()}
	target := node.identity()
	huge := binary.BigEndian.AppendUint32(nil, 1<<32-1)
	for name, text := range map[string][]byte{
		"unknown type":     {9, 9, 9},
		"huge array":       append([]byte{0, 0x81, 0xa7, 'E', 'n', 't', 'r', 'i', 'e', 's', 0xdd}, huge...),
		"huge bytes":       append([]byte{0, 0x81, 0xa6, 'L', 'e', 'a', 'd', 'e', 'r', 0xc6}, huge...),
		"huge field name":  append([]byte{0, 0x81, 0xdb}, huge...),
		"huge map":         append([]byte{0, 0xdf}, huge...),
		"deep nesting":     append([]byte{0, 0x81, 0xa1, 'x'}, bytes.Repeat([]byte{0x91}, 1<<20)...),
		"garbage":          bytes.Repeat([]byte{3, 0xc1, 0xff}, 1<<16),
		"snapshot of 2^62": {3, 0x81, 0xa4, 'S', 'i', 'z', 'e', 0xd3, 0x40, 0, 0, 0, 0, 0, 0, 0},
	} {
		c, err := a.as("a-secret-of-the-test", self, target, mux.Raft)
		if err != nil {
			a.t.Errorf("%s: %v", name, err)
			continue
		}
		c.Write(text)
	}
	for _, text := range [][]byte{
		bytes.Repeat([]byte("x"), 1<<16),
		append([]byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), bytes.Repeat([]byte{0xff}, 1<<16)...),
	} {
		if c, err := a.as("a-secret-of-the-test", self, mux.Identity{}, mux.RPC); err == nil {
			c.Write(text)
		}
	}
}

// calls are larger than any that a node makes.
func (a *attacker) calls(node *testNode) {
	self := mux.Identity{Node: "mad", Incarnation: "1", Cluster: node.clusterID()}
	conn, err := grpc.NewClient("passthrough:///x", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) {
			c, err := a.as("a-secret-of-the-test", self, mux.Identity{}, mux.RPC)
			if err != nil {
				return nil, err
			}
			return c, nil
		}))
	if err != nil {
		a.t.Fatal(err)
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if _, err := peerpb.NewPeerClient(conn).Ask(ctx, &peerpb.AskRequest{Topic: "x", Question: make([]byte, maxMessage+1)}); err == nil || !strings.Contains(err.Error(), "larger than max") {
		a.t.Errorf("a call of more than %d bytes: %v", maxMessage, err)
	}
}

// TestAttack_OnThePeerPort lets strangers, and nodes gone mad, at the peer ports of a
// leader and of a follower while writes go on: none fails, the leader stays, and what
// was taken is given back.
func TestAttack_OnThePeerPort(t *testing.T) {
	c := startCluster(t, 3, nil)
	eventually(t, 15*time.Second, "cluster id known", func() error {
		for _, n := range c.nodes {
			if n.clusterID() == "" {
				return errors.New(n.opts.NodeID)
			}
		}
		return nil
	})
	l, f := c.leader(), c.follower()
	_, term, _ := c.nodes[l].Leader()
	heap, goroutines, began := heapInUse(), runtime.NumGoroutine(), totalAllocated()
	ctx, cancel := context.WithCancel(context.Background())
	var writers sync.WaitGroup
	writers.Go(func() {
		for i := 0; ctx.Err() == nil; i++ {
			if _, err := c.nodes[f].Propose(context.Background(), instance(i%1000)); err != nil {
				t.Errorf("write under attack: %v", err)
			}
			<-time.After(5 * time.Millisecond)
		}
	})
	for _, n := range []*testNode{c.nodes[l], c.nodes[f]} {
		a := &attacker{t: t, target: n.opts.PeerAddr}
		a.silent(3000)
		a.loris(50)
		foreign := mux.Identity{Node: "x", Incarnation: "1", Cluster: "another"}
		for range 50 {
			if _, err := a.as("a wrong secret of the test", foreign, mux.Identity{}, mux.Raft); err == nil {
				t.Error("a wrong secret passes")
			}
			if _, err := a.as("a-secret-of-the-test", foreign, n.identity(), mux.Raft); err == nil || !strings.Contains(err.Error(), "of cluster another") {
				t.Errorf("a foreign node: %v", err)
			}
		}
		a.replay(c.nodes[3-l-f].identity(), 50)
		a.frames(n)
		a.calls(n)
		a.close()
	}
	cancel()
	writers.Wait()
	if _, now, self := c.nodes[l].Leader(); !self || now != term {
		t.Errorf("leader lost: term %d, was %d", now, term)
	}
	if got := totalAllocated() - began; got > 1<<30 {
		t.Errorf("%d MiB were allocated in all", got>>20)
	}
	eventually(t, 15*time.Second, "memory and goroutines given back", func() error {
		if now := heapInUse(); now > heap+16<<20 {
			return fmt.Errorf("heap of %d MiB, was %d", now>>20, heap>>20)
		}
		if now := runtime.NumGoroutine(); now > goroutines+30 {
			return fmt.Errorf("%d goroutines, were %d", now, goroutines)
		}
		return nil
	})
}

func heapInUse() uint64 {
	var s runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&s)
	return s.HeapAlloc
}

func totalAllocated() uint64 {
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return s.TotalAlloc
}
