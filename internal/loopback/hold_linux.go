package loopback

import (
	"errors"
	"os"
	"syscall"
)

// hold binds a socket to the port and never listens on it. That takes the port from
// everybody but those who allow its address to be shared, as listeners of Go do and this
// socket does once it has the port to itself.
func hold(port int) (release func() error, err error) {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	release = func() error { return os.NewSyscallError("close", syscall.Close(fd)) }
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return nil, errors.Join(os.NewSyscallError("bind", err), release())
	}
	if err := syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1); err != nil {
		return nil, errors.Join(os.NewSyscallError("setsockopt", err), release())
	}
	return release, nil
}
