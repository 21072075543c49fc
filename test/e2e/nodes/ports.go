package nodes

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
)

// Ports of nodes come from below the range of outgoing connections: one of those could
// take the port of a node that is down.
const (
	lowestPort = 12000
	portSpan   = 20000
)

var given struct {
	sync.Mutex
	ports map[int]bool
}

// freeAddress is an address on loopback that nobody listens on and that this process has
// not given away before.
func freeAddress() (string, error) {
	given.Lock()
	defer given.Unlock()
	if given.ports == nil {
		given.ports = map[int]bool{}
	}
	for range 1000 {
		port := lowestPort + rand.IntN(portSpan)
		if given.ports[port] {
			continue
		}
		address := fmt.Sprintf("127.0.0.1:%d", port)
		ln, err := net.Listen("tcp", address)
		if err != nil {
			continue
		}
		if err := ln.Close(); err != nil {
			return "", err
		}
		given.ports[port] = true
		return address, nil
	}
	return "", errors.New("no free port on loopback")
}
