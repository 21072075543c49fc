//go:build !linux

package loopback

import (
	"fmt"
	"net"
)

// hold only finds out whether the port is free: elsewhere no listener can share the address
// of a socket that holds it.
func hold(port int) (release func() error, err error) {
	ln, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return nil, err
	}
	return func() error { return nil }, ln.Close()
}
