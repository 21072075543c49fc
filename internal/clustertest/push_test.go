package clustertest

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

const javaAgent = "Nacos-Java-Client:v1.4.7"

// udpClient is a Nacos 1.x client as far as pushes go.
type udpClient struct {
	c    *Cluster
	conn *net.UDPConn
}

func newUDPClient(c *Cluster) *udpClient {
	c.t.Helper()
	conn, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { conn.Close() })
	return &udpClient{c, conn}
}

// list is what a list or a push says.
type list struct {
	Hosts       []Host
	CacheMillis int
	LastRefTime int64
}

// query asks a node for a service, which makes the client its subscriber.
func (u *udpClient) query(m *Member, service string) list {
	u.c.t.Helper()
	url := fmt.Sprintf("%s%s/instance/list?serviceName=%s&clientIP=127.0.0.1&udpPort=%d", m.HTTP, nacos, service, u.conn.LocalAddr().(*net.UDPAddr).Port)
	req, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		u.c.t.Fatal(err)
	}
	req.Header.Set("User-Agent", javaAgent)
	resp, err := (&http.Client{Transport: u.c.transport, Timeout: clientTimeout}).Do(req)
	if err != nil {
		u.c.t.Fatal(err)
	}
	defer resp.Body.Close()
	var l list
	if err := json.NewDecoder(resp.Body).Decode(&l); err != nil {
		u.c.t.Fatal(err)
	}
	return l
}

// push waits for the next push and acknowledges it.
func (u *udpClient) push(wait time.Duration) (l list, ok bool) {
	u.c.t.Helper()
	if err := u.conn.SetReadDeadline(time.Now().Add(wait)); err != nil {
		u.c.t.Fatal(err)
	}
	b := make([]byte, 65536)
	n, from, err := u.conn.ReadFromUDPAddrPort(b)
	if err != nil {
		return l, false
	}
	text := b[:n]
	if bytes.HasPrefix(text, []byte{0x1f, 0x8b}) {
		z, err := gzip.NewReader(bytes.NewReader(text))
		if err != nil {
			u.c.t.Fatal(err)
		}
		if text, err = io.ReadAll(z); err != nil {
			u.c.t.Fatal(err)
		}
	}
	var packet struct {
		Type        string
		Data        string
		LastRefTime int64
	}
	if err := json.Unmarshal(text, &packet); err != nil || packet.Type != "dom" {
		u.c.t.Fatalf("%q: %v", text, err)
	}
	if err := json.Unmarshal([]byte(packet.Data), &l); err != nil || l.LastRefTime != packet.LastRefTime || l.CacheMillis != 10000 {
		u.c.t.Fatalf("%q: %v", text, err)
	}
	ack := fmt.Sprintf(`{"type":"push-ack","lastRefTime":"%d","data":""}`, packet.LastRefTime)
	if _, err := u.conn.WriteToUDPAddrPort([]byte(ack), from); err != nil {
		u.c.t.Fatal(err)
	}
	return l, true
}

func TestCluster_EveryChangeThroughAnyNodeIsPushedByTheNodeThatWasAsked(t *testing.T) {
	c := Start(t, 3, nil)
	followers := c.Followers()
	asked, other := followers[0], followers[1]
	u := newUDPClient(c)
	if l := u.query(asked, "svc"); l.CacheMillis != 10000 || len(l.Hosts) != 0 {
		t.Fatalf("%+v", l)
	}
	stamp := int64(0)
	var took []time.Duration
	expect := func(hosts int) {
		t.Helper()
		began := time.Now()
		l, ok := u.push(patience)
		for ok && l.LastRefTime == stamp { // again: its acknowledgement was late
			l, ok = u.push(patience)
		}
		if !ok || len(l.Hosts) != hosts || l.LastRefTime <= stamp {
			t.Fatalf("%t %+v after stamp %d, want %d hosts", ok, l, stamp, hosts)
		}
		took = append(took, time.Since(began))
		stamp = l.LastRefTime
	}
	for i := range 5 {
		other.MustRegister("svc", "10.0.0.1", 1000+i, long)
		expect(i + 1)
	}
	asked.Stop()
	other.MustRegister("svc", "10.0.0.1", 2000, long)
	l := u.query(other, "svc") // as a client does on its next poll
	if len(l.Hosts) != 6 || l.LastRefTime <= stamp {
		t.Fatalf("%+v after stamp %d", l, stamp)
	}
	stamp = l.LastRefTime
	for i := range 6 {
		port := 1000 + i
		if i == 5 {
			port = 2000
		}
		c.Until("a deregistration", func() bool {
			a, err := other.Deregister("svc", "10.0.0.1", port)
			return err == nil && a.Status == http.StatusOK
		})
		expect(5 - i)
	}
	// Most of them: at some time during one, a busy machine may stand still.
	if slices.Sort(took); took[len(took)/2] > time.Second {
		t.Errorf("pushes came %v after the answer", took)
	}
}

func TestCluster_SubscribersAndPushStateAreThoseOfAllNodes(t *testing.T) {
	c := Start(t, 3, nil)
	var clients []*udpClient
	for _, m := range c.Members() {
		u := newUDPClient(c)
		u.query(m, "svc")
		clients = append(clients, u)
	}
	clients[0].query(c.Members()[1], "svc") // of two nodes, and still one row
	for _, m := range c.Members() {
		a, err := m.Do(http.MethodGet, "/service/subscribers", "serviceName=svc&pageNo=1&pageSize=10")
		if err != nil || !strings.Contains(a.Body, `"count":3`) || strings.Count(a.Body, javaAgent) != 3 {
			t.Errorf("%s: %+v %v", m.ID, a, err)
		}
		a, err = m.Do(http.MethodGet, "/service/subscribers", "serviceName=svc&aggregation=false")
		if err != nil || strings.Contains(a.Body, `"count":3`) {
			t.Errorf("%s alone: %+v %v", m.ID, a, err)
		}
	}
	c.Leader().MustRegister("svc", "10.0.0.1", 1000, long)
	for _, u := range append(clients, clients[0]) { // it asked two nodes
		if _, ok := u.push(patience); !ok {
			t.Error("no push")
		}
	}
	c.Until("four pushes, all acknowledged", func() bool {
		a, err := c.Members()[2].Do(http.MethodGet, "/operator/push/state", "detail=true")
		return err == nil && a.Body == `{"succeed":4,"total":4,"data":[],"ratio":1.0,"reset":false}`
	})
	a, err := c.Members()[0].Do(http.MethodGet, "/operator/push/state", "reset=true")
	b, err2 := c.Members()[1].Do(http.MethodGet, "/operator/push/state", "")
	if err != nil || err2 != nil || !strings.Contains(a.Body, `"total":4`) || b.Body != `{"succeed":0,"total":0,"ratio":0.0,"reset":false}` {
		t.Errorf("%+v, then %+v", a, b)
	}
}
