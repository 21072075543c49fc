package field

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"time"
)

// subscriber is a Nacos 1.x client as far as pushes go.
type subscriber struct {
	t    *testing.T
	conn *net.UDPConn
}

// push is one packet: the outer object, the list inside it, and the list's own text.
type push struct {
	Type        string
	LastRefTime int64
	Data        string
	list        pushedList
}

type pushedList struct {
	Name, Clusters string
	LastRefTime    int64
	Hosts          []pushedHost
}

type pushedHost struct {
	IP          string
	Port        int
	ClusterName string
	Healthy     bool
	Metadata    map[string]string
}

func newSubscriber(t *testing.T) *subscriber {
	t.Helper()
	conn, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return &subscriber{t, conn}
}

// subscribe asks a node for a service, with an address to push to.
func (s *subscriber) subscribe(m *member, params string) {
	s.t.Helper()
	if status := subscribeAt(s.t, m, params, "127.0.0.1", s.conn.LocalAddr().(*net.UDPAddr).Port); status != http.StatusOK {
		s.t.Fatalf("list on %s: %d", m.ID, status)
	}
}

// subscribeAt is the query of a Java client that listens at an address.
func subscribeAt(t *testing.T, m *member, params, ip string, port int, headers ...string) int {
	t.Helper()
	a := insist(t, m, step{method: http.MethodGet, target: fmt.Sprintf("%s/instance/list?%s&clientIP=%s&udpPort=%d", prefix, params, ip, port),
		headers: append(headers, "User-Agent: Nacos-Java-Client:v1.4.7")})
	return a.status
}

// next is the next packet within a time, acknowledged; false when there is none. It may be
// called from any goroutine.
func (s *subscriber) next(wait time.Duration) (p push, came bool) {
	if err := s.conn.SetReadDeadline(time.Now().Add(wait)); err != nil {
		s.t.Error(err)
		return p, false
	}
	b := make([]byte, 65536)
	n, from, err := s.conn.ReadFromUDPAddrPort(b)
	if err != nil {
		return p, false
	}
	if p, err = parsePush(b[:n]); err != nil {
		s.t.Errorf("%q: %v", b[:n], err)
		return p, false
	}
	_, err = s.conn.WriteToUDPAddrPort(fmt.Appendf(nil, `{"type":"push-ack","lastRefTime":"%d","data":""}`, p.LastRefTime), from)
	return p, err == nil
}

func parsePush(text []byte) (p push, err error) {
	if bytes.HasPrefix(text, []byte{0x1f, 0x8b}) {
		z, err := gzip.NewReader(bytes.NewReader(text))
		if err != nil {
			return p, err
		}
		if text, err = io.ReadAll(z); err != nil {
			return p, err
		}
	}
	if err := json.Unmarshal(text, &p); err != nil {
		return p, err
	}
	err = json.Unmarshal([]byte(p.Data), &p.list)
	if err == nil && (p.Type != "dom" || p.list.LastRefTime != p.LastRefTime) {
		err = fmt.Errorf("type %q, time %d around a list of %d", p.Type, p.LastRefTime, p.list.LastRefTime)
	}
	return p, err
}

// await reads packets until one fits, tells whether one came in time, and returns the last
// one and how many there were. Their times never go back. It may be called from any goroutine.
func (s *subscriber) await(fits func(pushedList) bool) (p push, packets int, found bool) {
	for end := time.Now().Add(30 * time.Second); ; {
		next, came := s.next(max(time.Until(end), time.Millisecond))
		if !came {
			return p, packets, false
		}
		if packets++; next.LastRefTime < p.LastRefTime {
			s.t.Errorf("push of %d after one of %d", next.LastRefTime, p.LastRefTime)
		}
		if p = next; fits(p.list) {
			return p, packets, true
		}
	}
}

// until is await that fails the test when nothing fits.
func (s *subscriber) until(what string, fits func(pushedList) bool) push {
	s.t.Helper()
	p, packets, found := s.await(fits)
	if !found {
		s.t.Fatalf("no push with %s; the last of %d: %s", what, packets, p.Data)
	}
	return p
}

// quiet checks that for a while nothing comes but what fits, such as a repeated packet.
func (s *subscriber) quiet(d time.Duration, fits func(pushedList) bool) {
	s.t.Helper()
	for end := time.Now().Add(d); time.Now().Before(end); {
		if p, came := s.next(max(time.Until(end), time.Millisecond)); came && !fits(p.list) {
			s.t.Fatalf("afterwards came %s", p.Data)
		}
	}
}

// ports are those of a list's hosts.
func (l pushedList) ports() []int {
	ports := []int{}
	for _, h := range l.Hosts {
		ports = append(ports, h.Port)
	}
	return ports
}
