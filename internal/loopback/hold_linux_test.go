package loopback

import (
	"errors"
	"net"
	"strconv"
	"syscall"
	"testing"
)

// The port of a node that was not started yet, or was down, used to be anybody's: two
// processes of tests could be given the same one.
func TestFreeAddress_IsHeldFromOthersAndServesItsOwner(t *testing.T) {
	address := FreeAddress(t)
	_, text, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	taken := func(when string) {
		t.Helper()
		if release, err := hold(port); err == nil {
			t.Errorf("%s: another process would be given the same port (%v)", when, release())
		}
	}
	for range 3 { // as a node that starts, ends and starts again
		taken("before anybody listens")
		if _, err := net.Dial("tcp", address); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("a call where nobody listens: %v", err)
		}
		ln, err := net.Listen("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		taken("while its owner listens")
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		conn.Close()
		if _, err := net.Listen("tcp", address); !errors.Is(err, syscall.EADDRINUSE) {
			t.Errorf("a second listener: %v", err)
		}
		ln.Close()
	}
}

func TestFreeAddress_IsFreeWhenTheTestHasEnded(t *testing.T) {
	var port int
	t.Run("holder", func(t *testing.T) {
		_, text, _ := net.SplitHostPort(FreeAddress(t)) // it has both parts
		port, _ = strconv.Atoi(text)
	})
	release, err := hold(port)
	if err != nil {
		t.Fatal(err)
	}
	if err := release(); err != nil {
		t.Error(err)
	}
}
