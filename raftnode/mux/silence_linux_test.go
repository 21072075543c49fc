package mux

import (
	"context"
	"net"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// silenceOf reads the bound of a connection.
func silenceOf(t *testing.T, raw net.Conn) time.Duration {
	t.Helper()
	control, err := raw.(syscall.Conn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var ms int
	if inner := control.Control(func(fd uintptr) {
		ms, err = unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT)
	}); inner != nil || err != nil {
		t.Fatal(inner, err)
	}
	return time.Duration(ms) * time.Millisecond
}

// TestMux_SilentPeerIsGivenUpFromBothEnds: connections from before a partition, or to an
// address that a peer had left, kept a node without a leader until calls timed out.
func TestMux_SilentPeerIsGivenUpFromBothEnds(t *testing.T) {
	a, b := open(t, Identity{Node: "a"}, nil), open(t, Identity{Node: "b"}, nil)
	for kind, want := range map[Kind]time.Duration{Raft: raftSilence, RPC: rpcSilence} {
		dialled, err := a.Dial(context.Background(), kind, b.address(), Identity{})
		if err != nil {
			t.Fatal(err)
		}
		defer dialled.Close()
		l := b.Raft()
		if kind == RPC {
			l = b.RPC()
		}
		accepted, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		defer accepted.Close()
		for end, c := range map[string]net.Conn{"dialled": dialled.raw, "accepted": accepted.(*Conn).raw} {
			if got := silenceOf(t, c); got != want {
				t.Errorf("%v, %s: a silent peer is given up after %s, want %s", kind, end, got, want)
			}
		}
	}
}
