package mux

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"testing"
	"time"
)

// TestMux_FloodOfSilentConnectionsKeepsNoPeerOut: with all places taken by those who say
// nothing, the oldest of them goes when a peer comes.
func TestMux_FloodOfSilentConnectionsKeepsNoPeerOut(t *testing.T) {
	m := open(t, Identity{Node: "a"}, nil)
	began := time.Now()
	for range 2 * maxUnproven {
		c, err := net.Dial("tcp", m.address())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	if _, err := m.Dial(context.Background(), RPC, m.address(), Identity{}); err != nil {
		t.Fatalf("after a flood of %v: %v", time.Since(began), err)
	}
	m.mu.Lock()
	held := m.raw.Len()
	m.mu.Unlock()
	if held > maxUnproven {
		t.Errorf("%d unproven connections are held, the limit is %d", held, maxUnproven)
	}
}

// TestSieve_ManyKeysPassNoMoreLines: strangers with many addresses cannot fill the log.
func TestSieve_ManyKeysPassNoMoreLines(t *testing.T) {
	s := newSieve(50*time.Millisecond, 10)
	passed := 0
	began := time.Now()
	for i := range 1000 {
		if s.pass(fmt.Sprint(i)) {
			passed++
		}
	}
	if periods := 1 + int(time.Since(began)/(50*time.Millisecond)); passed > 10*(periods+1) || passed < 10 {
		t.Errorf("%d lines passed in %d periods", passed, periods)
	}
	deadline := time.Now().Add(5 * time.Second)
	for !s.pass("another") {
		if time.Now().After(deadline) {
			t.Fatal("no line ever passes again")
		}
	}
}

// FuzzProven feeds the accepting side a greeting with a right proof: what a node that
// went mad, or one of another version, may send.
func FuzzProven(f *testing.F) {
	g, err := greeting{kind: Raft, self: Identity{"a", "1", "c"}, target: Identity{Node: "b", Incarnation: "2"}}.encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(g)
	f.Add([]byte{1, 9, 0, 0, 0, 0, 0, 0})
	f.Add([]byte{2, 1})
	f.Add(bytes.Repeat([]byte{0xff}, maxGreeting))
	f.Fuzz(func(t *testing.T, b []byte) {
		near, far := net.Pipe()
		defer near.Close()
		go func() {
			defer far.Close()
			hello := append(magic[:], make([]byte, nonceSize)...)
			far.Write(hello)
			nonce := make([]byte, nonceSize)
			if _, err := io.ReadFull(far, nonce); err != nil {
				return
			}
			tr := &transcript{secret: secret, seen: append(append([]byte{}, hello...), nonce...)}
			frame := append([]byte{byte(len(b) >> 8), byte(len(b))}, b...)
			tr.seen = append(tr.seen, frame...)
			far.Write(append(frame, tr.proof(sideDial)...))
			io.Copy(io.Discard, far)
		}()
		judged := false
		got, err := acceptHandshake(near, secret, func(g greeting) greeting {
			judged = true
			return greeting{kind: g.kind, self: Identity{Node: "b"}}
		})
		if (err == nil) != judged {
			t.Fatalf("judged %v, error %v", judged, err)
		}
		if again, e := got.encode(); err == nil && (e != nil || !bytes.Equal(again, b)) {
			t.Fatalf("%x was taken for %+v", b, got)
		}
	})
}
