package mux

import (
	"net"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// How long a connection may wait for the peer's kernel to acknowledge what was sent, or to
// make room for it.
const (
	// raftSilence is also what a store call may take before a node is said to hang: a peer
	// that is merely slow, and does not read meanwhile, keeps its connections.
	raftSilence = 5 * time.Second
	// rpcSilence is the deadline of a write, which may be waiting. Whatever its disk does, a
	// peer goes on reading calls.
	rpcSilence = 3 * time.Second
)

// boundSilence ends a connection whose peer says nothing for that long. Left to itself TCP
// sends again after a time that doubles: when a partition that lasted a minute is over, it
// may be another minute before a connection from before shows life, and one to an address
// that is gone never does. Connections that are no TCP sockets, as in tests, stay as they
// are.
func boundSilence(raw net.Conn, kind Kind) {
	bound := rpcSilence
	if kind == Raft {
		bound = raftSilence
	}
	socket, ok := raw.(syscall.Conn)
	if !ok {
		return
	}
	control, err := socket.SyscallConn()
	if err != nil {
		return // closed meanwhile: the next read tells
	}
	_ = control.Control(func(fd uintptr) {
		// An old kernel that refuses costs time after a partition, no more.
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(bound.Milliseconds()))
	})
}
