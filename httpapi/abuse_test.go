package httpapi

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/textproto"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

// dialServer connects to a server, with a deadline for all that follows.
func dialServer(t *testing.T, address string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	return conn
}

// TestSlowHeadersAndIdleConnections_AreClosedAndHoldUpNobody: without timeouts a few
// thousand half-open requests locked a server out (hashicorp/consul #7159, CVE-2020-7219;
// securego/gosec #807).
func TestSlowHeadersAndIdleConnections_AreClosedAndHoldUpNobody(t *testing.T) {
	t.Parallel()
	if o := DefaultOptions(); o.HeaderTimeout > 10*time.Second || o.IdleTimeout > 2*time.Minute {
		t.Errorf("headers may take %s, idle connections stay %s", o.HeaderTimeout, o.IdleTimeout)
	}
	s, _ := newTestServer(t, func(o *Options) { o.HeaderTimeout, o.IdleTimeout = 500*time.Millisecond, 500*time.Millisecond })
	address := startServer(t, s)
	var closed sync.WaitGroup
	for i := range 200 {
		conn := dialServer(t, address)
		closed.Go(func() {
			switch i % 3 {
			case 0: // a byte of a header now and then
				for _, b := range []byte("GET /livez HTTP/1.1\r\nX-Slow: " + strings.Repeat("a", 1000)) {
					if _, err := conn.Write([]byte{b}); err != nil {
						if os.IsTimeout(err) {
							t.Error("a header may take half a minute")
						}
						return
					}
					<-time.After(100 * time.Millisecond)
				}
				t.Error("a header may take as long as it likes")
			case 1: // nothing at all
				waitClosed(t, conn)
			case 2: // a request, and nothing more
				_, _ = io.WriteString(conn, "GET /livez HTTP/1.1\r\nHost: x\r\n\r\n")
				waitClosed(t, conn)
			}
		})
	}
	ended := make(chan struct{})
	go func() { closed.Wait(); close(ended) }()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 20 * time.Second}
	for served := 0; ; served++ {
		select {
		case <-ended:
			if served < 3 {
				t.Errorf("%d ordinary requests were served meanwhile", served)
			}
			return
		default:
		}
		resp, err := client.Get("http://" + address + listPath)
		if err != nil {
			t.Fatalf("an ordinary request beside them: %v", err)
		}
		resp.Body.Close()
	}
}

// waitClosed reads until the other side ends the connection.
func waitClosed(t *testing.T, conn net.Conn) {
	if _, err := io.Copy(io.Discard, conn); os.IsTimeout(err) {
		t.Error("a connection stays open")
	}
}

// hugeRequests are bodies beyond all limits: how each is announced, what is repeated in it,
// and the status that it must get.
var hugeRequests = map[string]struct {
	header, chunk string
	status        int
}{
	"announced 2 GB": {"Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 2147483648\r\n", strings.Repeat("a", 32<<10), 413},
	"endless chunks": {"Content-Type: application/x-www-form-urlencoded\r\nTransfer-Encoding: chunked\r\n", fmt.Sprintf("8000\r\n%s\r\n", strings.Repeat("a", 32<<10)), 413},
	"a million keys": {"Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 6000000\r\n", strings.Repeat("k=1&j&", 1000), 413},
	"many parts": {"Content-Type: multipart/form-data; boundary=b\r\nTransfer-Encoding: chunked\r\n",
		fmt.Sprintf("%x\r\n%s\r\n", 62000, strings.Repeat("--b\r\nContent-Disposition: form-data; name=\"f\"; filename=\"f\"\r\n\r\nx\r\n", 1000)[:62000]), 415},
}

// TestHugeBodies_AreRefusedAndTakeNoMemory: bodies were read whole, without a limit
// (CVE-2025-11375; alibaba/nacos #4587; apache/shenyu #6627).
func TestHugeBodies_AreRefusedAndTakeNoMemory(t *testing.T) {
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	s, f := newTestServer(t, nil)
	address := startServer(t, s)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	var wg sync.WaitGroup
	for name, huge := range hugeRequests {
		for range 20 {
			conn := dialServer(t, address)
			wg.Go(func() {
				sent, status, err := sendEndlessly(conn, huge.header, huge.chunk)
				if status != huge.status || sent > 64<<20 {
					t.Errorf("%s: %d after %d bytes, %v; want %d", name, status, sent, err, huge.status)
				}
			})
		}
	}
	wg.Wait()
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapSys) - int64(before.HeapSys); grown > 100<<20 {
		t.Errorf("the heap grew by %d MiB", grown>>20)
	}
	if left, err := os.ReadDir(temporary); err != nil || len(left) != 0 {
		t.Errorf("temporary files %v, %v", left, err)
	}
	if len(f.proposed) != 0 {
		t.Errorf("proposed %v", f.proposed)
	}
}

// sendEndlessly sends a registration whose body never ends until the server has had enough,
// and returns what was sent and what was answered.
func sendEndlessly(conn net.Conn, header, chunk string) (sent, status int, err error) {
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		var line string
		line, err = textproto.NewReader(bufio.NewReader(conn)).ReadLine()
		_, _ = fmt.Sscanf(line, "HTTP/1.1 %d", &status) // 0 is none
	}()
	_, werr := io.WriteString(conn, "POST "+registerPath+" HTTP/1.1\r\nHost: x\r\n"+header+"\r\n")
	for werr == nil {
		var n int
		n, werr = io.WriteString(conn, chunk)
		sent += n
		select {
		case <-answered:
			return sent, status, err
		default:
		}
	}
	<-answered
	return sent, status, err
}
