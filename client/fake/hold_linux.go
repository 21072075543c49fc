package fake

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// hold takes a free port of 127.0.0.1 and keeps it until release, so that it is there when
// the server listens again after Pause: nobody else is given it, and calls are refused
// while nobody listens. It binds a socket that never listens, and lets those share its
// address who allow the same, as listeners of Go do.
func hold() (address string, release func() error, err error) {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return "", nil, os.NewSyscallError("socket", err)
	}
	release = func() error { return os.NewSyscallError("close", syscall.Close(fd)) }
	port, err := bindAny(fd)
	if err != nil {
		return "", nil, errors.Join(err, release())
	}
	return fmt.Sprintf("127.0.0.1:%d", port), release, nil
}

// bindAny binds a socket to a free port and tells which.
func bindAny(fd int) (port int, err error) {
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return 0, os.NewSyscallError("bind", err)
	}
	name, err := syscall.Getsockname(fd)
	if err != nil {
		return 0, os.NewSyscallError("getsockname", err)
	}
	bound, ok := name.(*syscall.SockaddrInet4)
	if !ok {
		return 0, fmt.Errorf("a socket of IPv4 is bound to %T", name)
	}
	return bound.Port, os.NewSyscallError("setsockopt", syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1))
}
