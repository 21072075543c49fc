package fake

import (
	"errors"
	"net"
	"strings"
	"syscall"
	"testing"
)

// The port of a server that was paused used to be anybody's, and Restart failed when
// another process had taken it.
func TestPause_ThePortStaysItsOwn(t *testing.T) {
	s, err := Start()
	if err != nil {
		t.Fatal(err)
	}
	address := strings.TrimPrefix(s.URL(), "http://")
	to, err := net.ResolveTCPAddr("tcp4", address)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		s.Pause()
		if _, err := net.Dial("tcp4", address); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("a call while it is paused: %v", err)
		}
		// As a connection of another process that is given this port for its own end.
		fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
		if err != nil {
			t.Fatal(err)
		}
		err = syscall.Bind(fd, &syscall.SockaddrInet4{Port: to.Port, Addr: [4]byte{127, 0, 0, 1}})
		if !errors.Is(err, syscall.EADDRINUSE) {
			t.Errorf("the port is another's while the server is paused: %v", err)
		}
		syscall.Close(fd)
		if err := s.Restart(); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Stop(); err != nil {
		t.Error(err)
	}
	if err := s.Stop(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("a second Stop: %v", err)
	}
}
