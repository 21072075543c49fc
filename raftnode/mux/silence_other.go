//go:build !linux

package mux

import "net"

// boundSilence leaves it to TCP, and to the timeouts of calls, when a silent peer is given
// up: only Linux has a setting for each connection.
func boundSilence(net.Conn, Kind) {}
