//go:build linux

package netns

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Shape is what happens to each packet between nodes, in each direction.
type Shape struct {
	// Delay is the time that a packet takes, Jitter what may be missing from that or come
	// on top; packets overtake one another then.
	Delay, Jitter time.Duration
	// Loss is the part of all packets that never arrive.
	Loss float64
	// Rate is in bytes a second for each link and direction; 0 is no limit.
	Rate int
}

const (
	// device is the way out of a node's namespace that leads through this process.
	device = "slow"
	// mtu is that of the ordinary way.
	mtu = 1500
	// waiting bounds the packets on their way; more are lost.
	waiting = 20000
)

// shaper carries packets between nodes by hand: not every kernel has netem. Each node has
// a TUN device, to which its routes to other nodes point. One goroutine reads each device,
// and one writes what is due; they end with close.
type shaper struct {
	shape   Shape
	devices []*os.File
	to      map[[4]byte]int // by address
	due     *schedule
	wg      sync.WaitGroup

	carried, lost atomic.Int64
}

// Slow shapes what goes between nodes, until Straighten. The test is skipped where there
// are no TUN devices.
func (w *Network) Slow(s Shape) {
	w.t.Helper()
	if _, err := os.Stat("/dev/net/tun"); err != nil {
		w.t.Skipf("slow links need TUN devices: %v", err)
	}
	slow := &shaper{shape: s, to: map[[4]byte]int{}, due: newSchedule(waiting)}
	w.slow = slow // closed with the network, also when the next step fails
	for i, h := range w.hosts {
		tun, err := openTUN(h.space)
		w.must(err)
		slow.devices = append(slow.devices, tun)
		slow.to[[4]byte(net.ParseIP(h.address).To4())] = i
		w.must(ip("-n", h.space, "link", "set", device, "mtu", fmt.Sprint(mtu), "up"))
	}
	slow.start()
	w.routes("replace")
}

// Straighten ends Slow: packets take the ordinary way again. It logs what was carried.
func (w *Network) Straighten() {
	w.t.Helper()
	w.routes("del")
	w.slow.report(w.t)
	w.slow.close()
	w.slow = nil
}

// routes changes the way from each node to each other.
func (w *Network) routes(change string) {
	w.t.Helper()
	for _, from := range w.hosts {
		for _, to := range w.hosts {
			if from != to {
				w.must(ip("-n", from.space, "route", change, to.address+"/32", "dev", device, "src", from.address))
			}
		}
	}
}

// openTUN makes the device of a namespace. It is gone once the file is closed.
func openTUN(space string) (tun *os.File, err error) {
	err = inside(space, func() error {
		fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
		if err != nil {
			return fmt.Errorf("open a TUN device: %w", err)
		}
		request, err := unix.NewIfreq(device)
		if err != nil {
			return err // a constant
		}
		request.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI)
		if err := unix.IoctlIfreq(fd, unix.TUNSETIFF, request); err != nil {
			_ = unix.Close(fd) // the first error is the one to tell
			return fmt.Errorf("make a TUN device: %w", err)
		}
		tun = os.NewFile(uintptr(fd), device)
		return nil
	})
	return tun, err
}

func (s *shaper) start() {
	for _, tun := range s.devices {
		s.wg.Go(func() { s.read(tun) })
	}
	s.wg.Go(func() { s.due.run(s.write) })
}

// read takes what one node sends until its device is closed.
func (s *shaper) read(tun *os.File) {
	buffer := make([]byte, 1<<16)
	free := map[int]time.Time{} // when the link to each node has sent all that it was given
	for {
		n, err := tun.Read(buffer)
		if err != nil {
			return
		}
		if n < 20 || buffer[0]>>4 != 4 {
			continue // IPv6 looks for routers
		}
		to, known := s.to[[4]byte(buffer[16:20])]
		if !known {
			continue
		}
		at := s.arrival(free, to, n)
		if rand.Float64() < s.shape.Loss || !s.due.add(packet{at, to, append([]byte(nil), buffer[:n]...)}) {
			s.lost.Add(1)
		}
	}
}

// arrival is when a packet of n bytes that is sent now gets to a node.
func (s *shaper) arrival(free map[int]time.Time, to, n int) time.Time {
	at := time.Now()
	if s.shape.Rate > 0 {
		if free[to].After(at) {
			at = free[to]
		}
		at = at.Add(time.Duration(n) * time.Second / time.Duration(s.shape.Rate))
		free[to] = at
	}
	at = at.Add(s.shape.Delay)
	if j := s.shape.Jitter; j > 0 {
		at = at.Add(rand.N(2*j) - j)
	}
	return at
}

func (s *shaper) write(p packet) {
	// An error is a packet lost, such as one to a device that is not up yet.
	if _, err := s.devices[p.to].Write(p.data); err != nil {
		s.lost.Add(1)
		return
	}
	s.carried.Add(1)
}

func (s *shaper) report(t testing.TB) {
	t.Helper()
	t.Logf("%d packets carried, %d lost", s.carried.Load(), s.lost.Load())
}

// close ends the goroutines and waits for them.
func (s *shaper) close() {
	s.due.close()
	for _, tun := range s.devices {
		_ = tun.Close() // gives up packets, no more
	}
	s.wg.Wait()
}
