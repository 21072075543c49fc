package e2e

import (
	"crypto/rand"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rollcall-io/rollcall/test/e2e/nodes"
)

// wantRefusal checks that a process ended by itself, in failure, and said why.
func wantRefusal(t *testing.T, code int, out, names string) {
	t.Helper()
	if code <= 0 || !strings.Contains(out, names) {
		t.Errorf("exit code %d, want a failure that names %s: %s", code, names, out)
	}
}

func TestForeignSecret_GetsNowhereAndChangesNothing(t *testing.T) {
	c := nodes.Start(t, binary, 3)
	c.Nodes()[0].MustRegister(nodes.Instance{Service: "svc", IP: "10.0.0.1", Port: 80}.Lasting())
	secret := filepath.Join(c.Root(), "foreign")
	if err := os.WriteFile(secret, []byte("another secret for tests"), 0o600); err != nil {
		t.Fatal(err)
	}
	stranger := nodes.New(t, binary, 1, "--node-id", "n9", "--bootstrap-expect", "3", "--join", c.Peers(), "--cluster-secret-file", secret)
	stranger.Nodes()[0].Start()
	for end := time.Now().Add(4 * time.Second); time.Now().Before(end); pass(100 * time.Millisecond) {
		if stranger.Nodes()[0].Ready() {
			t.Fatal("a node with another secret became ready")
		}
	}
	a, err := c.Nodes()[0].Do(http.MethodGet, "/operator/servers", nil)
	if err != nil || strings.Contains(a.Body, "n9") || strings.Count(a.Body, `"voter":true`)+strings.Count(a.Body, `"voter":"true"`) != 3 {
		t.Errorf("members after a stranger came: %v %s", err, a.Body)
	}
	for _, n := range c.Nodes() {
		n.MustRegister(nodes.Instance{Service: "svc", IP: "10.0.0.1", Port: 80}.Lasting())
		if keys := n.Keys("svc"); len(keys) != 1 {
			t.Errorf("%s lists %v", n.ID, keys)
		}
	}
}

// TestGarbageOnThePeerPort_IsCutOffAndHarmsNothing: probes and port scans on the Raft port
// flooded the log or ended the process (otoolep/hraftd #12; hashicorp/raft #246, #505).
func TestGarbageOnThePeerPort_IsCutOffAndHarmsNothing(t *testing.T) {
	c := nodes.Start(t, binary, 3, unhurried...)
	term, err := c.Leader().Metric("rollcall_raft_term")
	if err != nil {
		t.Fatal(err)
	}
	noise := make([]byte, 64<<10)
	if _, err := rand.Read(noise); err != nil {
		t.Fatal(err)
	}
	hello := "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" // how a TLS client begins
	var silent []net.Conn
	for _, n := range c.Nodes() {
		for _, junk := range []string{"", "GET / HTTP/1.1\r\nHost: x\r\n\r\n", hello, "\x7f\xff\xff\xff", string(noise)} {
			for range 20 {
				conn, err := net.Dial("tcp", n.Peer)
				if err != nil {
					t.Fatal(err)
				}
				_, _ = conn.Write([]byte(junk)) // it may be cut off already
				silent = append(silent, conn)
			}
		}
	}
	for _, conn := range silent {
		wantCutOff(t, conn)
	}
	for i, n := range c.Nodes() {
		n.MustRegister(nodes.Instance{Service: "svc", IP: "10.0.0.1", Port: 80 + i}.Lasting())
	}
	if now, err := c.Leader().Metric("rollcall_raft_term"); err != nil || now != term {
		t.Errorf("term %v after the noise, was %v: %v", now, term, err)
	}
}

// wantCutOff reads until the other side ends the connection.
func wantCutOff(t *testing.T, conn net.Conn) {
	t.Helper()
	defer conn.Close()
	if err := conn.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	for buf := make([]byte, 4096); ; {
		_, err := conn.Read(buf)
		if timeout, ok := err.(net.Error); ok && timeout.Timeout() {
			t.Fatal("a stranger's connection stays open")
		}
		if err != nil {
			return
		}
	}
}
