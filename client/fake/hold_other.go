//go:build !linux

package fake

// hold holds nothing: elsewhere no listener can share the address of a socket that does.
// The first listener finds a port, which may be another's after Pause.
func hold() (address string, release func() error, err error) {
	return "127.0.0.1:0", func() error { return nil }, nil
}
