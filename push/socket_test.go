package push

import (
	"net"
	"net/netip"
	"testing"
	"time"
)

// standstill is a socket whose owner is not run for a while after it has set a deadline.
type standstill struct {
	*net.UDPConn
	times int
	limit time.Duration
}

func (s *standstill) SetWriteDeadline(t time.Time) error {
	err := s.UDPConn.SetWriteDeadline(t)
	if s.times--; s.times >= 0 {
		<-time.After(2 * s.limit)
	}
	return err
}

// A push was dropped, and sent ten seconds later, when its goroutine stood still for the
// time that the system has to take it.
func TestSend_StandingStillBeforeItIsNoDrop(t *testing.T) {
	in, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	to := in.LocalAddr().(*net.UDPAddr).AddrPort()
	to = netip.AddrPortFrom(to.Addr().Unmap(), to.Port())
	const limit = 300 * time.Millisecond
	if err := send(&standstill{out, 1, limit}, limit, []byte("push"), to); err != nil {
		t.Fatal(err)
	}
	if err := in.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 10)
	if n, err := in.Read(b); err != nil || string(b[:n]) != "push" {
		t.Errorf("%q, %v", b[:n], err)
	}
}
