package mux

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"net"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var secret = []byte("a-secret-of-the-test")

// open makes a mux with a port of its own.
func open(t *testing.T, self Identity, change func(*Options)) *Mux {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Listener: l, Advertise: l.Addr().String(), Secret: secret, Self: func() Identity { return self }}
	if change != nil {
		change(&o)
	}
	m := New(o)
	t.Cleanup(func() { m.Close() })
	return m
}

func (m *Mux) address() string { return m.opts.Listener.Addr().String() }

func TestMux_HandsProvenConnectionsOver(t *testing.T) {
	a := open(t, Identity{Node: "a", Incarnation: "1"}, nil)
	b := open(t, Identity{Node: "b", Incarnation: "2", Cluster: "c"}, nil)
	for _, kind := range []Kind{Raft, RPC} {
		dialled, err := a.Dial(context.Background(), kind, b.address(), Identity{Node: "b", Incarnation: "2"})
		if err != nil {
			t.Fatal(err)
		}
		l := b.Raft()
		if kind == RPC {
			l = b.RPC()
		}
		accepted, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		if dialled.Peer.Cluster != "c" || accepted.(*Conn).Peer.Node != "a" {
			t.Errorf("%v: peers %+v and %+v", kind, dialled.Peer, accepted.(*Conn).Peer)
		}
		go dialled.Write([]byte("hello"))
		got := make([]byte, 5)
		if _, err := io.ReadFull(accepted, got); err != nil || string(got) != "hello" {
			t.Errorf("%v: read %q, %v", kind, got, err)
		}
	}
}

func TestMux_RefusesWhoMustNotPass(t *testing.T) {
	self := Identity{Node: "b", Incarnation: "2", Cluster: "c"}
	b := open(t, self, func(o *Options) {
		o.Admit = func(_ Kind, _, target Identity) error { return Mismatch(target, self) }
	})
	for _, row := range []struct {
		name   string
		self   Identity
		target Identity
		secret string
		want   string
	}{
		{name: "another secret", self: Identity{Node: "a"}, secret: "another-secret-of-the-test", want: "another cluster secret"},
		{name: "foreign cluster", self: Identity{Node: "a", Cluster: "d"}, want: "of cluster"},
		{name: "another incarnation", self: Identity{Node: "a"}, target: Identity{Node: "b", Incarnation: "1"}, want: "1 was wanted"},
		{name: "another node", self: Identity{Node: "a"}, target: Identity{Node: "x"}, want: "x was wanted"},
	} {
		t.Run(row.name, func(t *testing.T) {
			a := open(t, row.self, func(o *Options) {
				if row.secret != "" {
					o.Secret = []byte(row.secret)
				}
			})
			_, err := a.Dial(context.Background(), Raft, b.address(), row.target)
			if err == nil || !strings.Contains(err.Error(), row.want) {
				t.Fatalf("error %v, want %q", err, row.want)
			}
		})
	}
}

func TestMux_SilentConnectionsEndWithinTheirTime(t *testing.T) {
	m := open(t, Identity{Node: "a"}, nil)
	var silent []net.Conn
	for range 200 {
		c, err := net.Dial("tcp", m.address())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		silent = append(silent, c)
	}
	// Beside them a peer still gets through.
	if _, err := m.Dial(context.Background(), RPC, m.address(), Identity{}); err != nil {
		t.Fatal(err)
	}
	for _, c := range silent {
		c.SetReadDeadline(time.Now().Add(20 * time.Second))
		if _, err := c.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatalf("a silent connection: %v", err)
		}
	}
}

func TestMux_GarbageLeavesMemoryFlat(t *testing.T) {
	m := open(t, Identity{Node: "a"}, nil)
	junk := make([]byte, 64<<10)
	rand.Read(junk)
	throw := func(n int) {
		for i := range n {
			c, err := net.Dial("tcp", m.address())
			if err != nil {
				t.Fatal(err)
			}
			switch i % 3 {
			case 0:
				c.Write(junk)
			case 1: // the magic, then a huge length
				c.Write(append(magic[:], bytes.Repeat([]byte{0xff}, nonceSize+2)...))
			}
			c.Close()
		}
	}
	heap := func() uint64 {
		var s runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&s)
		return s.HeapAlloc
	}
	throw(50)
	before := heap()
	throw(500)
	if after := heap(); after > before+2<<20 {
		t.Fatalf("heap grew from %d to %d", before, after)
	}
}

func TestMux_CloseEndsEverything(t *testing.T) {
	m := open(t, Identity{Node: "a"}, nil)
	dialled, err := m.Dial(context.Background(), Raft, m.address(), Identity{})
	if err != nil {
		t.Fatal(err)
	}
	accepted, err := m.Raft().Accept()
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []net.Conn{dialled, accepted} {
		if _, err := c.Read(make([]byte, 1)); err == nil {
			t.Error("a connection outlives the mux")
		}
	}
	if _, err := m.Raft().Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("accept: %v", err)
	}
	if _, err := m.Dial(context.Background(), Raft, "127.0.0.1:1", Identity{}); err == nil {
		t.Error("dial on a closed mux")
	}
}

// halves joins what one side reads with what it writes.
type halves struct {
	io.Reader
	io.Writer
}

// FuzzAccept feeds the first bytes of a connection to the accepting side, which must
// neither panic nor let anybody in: the fuzzer does not know the secret.
func FuzzAccept(f *testing.F) {
	f.Add([]byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n"))
	f.Add(append(magic[:], bytes.Repeat([]byte{0}, nonceSize)...))
	g, err := greeting{kind: Raft, self: Identity{Node: "a", Incarnation: "1"}}.encode()
	if err != nil {
		f.Fatal(err)
	}
	hello := append(magic[:], bytes.Repeat([]byte{1}, nonceSize)...)
	f.Add(append(append(append(hello, 0, byte(len(g))), g...), bytes.Repeat([]byte{2}, proofSize)...))
	f.Fuzz(func(t *testing.T, b []byte) {
		_, err := acceptHandshake(halves{bytes.NewReader(b), io.Discard}, secret, func(greeting) greeting {
			t.Fatal("a stranger was judged")
			return greeting{}
		})
		if err == nil {
			t.Fatal("a stranger was let in")
		}
	})
}

// FuzzGreeting checks that what is decoded is encoded the same again.
func FuzzGreeting(f *testing.F) {
	g, err := greeting{kind: RPC, self: Identity{"a", "1", "c"}, target: Identity{Node: "b"}, refusal: "no"}.encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(g)
	f.Add([]byte{1, 1, 0, 0, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		g, err := decodeGreeting(b)
		if err != nil {
			return
		}
		again, err := g.encode()
		if err != nil || !bytes.Equal(again, b) {
			t.Fatalf("%x decodes to %+v and encodes to %x, %v", b, g, again, err)
		}
	})
}
