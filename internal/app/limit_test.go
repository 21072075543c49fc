package app

import (
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

func TestLimit_OneConnectionTooManyIsToldSo(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := limitConnections(inner, 1, prometheus.NewRegistry())
	accepted := make(chan net.Conn, 2)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			accepted <- c
		}
	}()
	t.Cleanup(func() { l.Close(); <-ended })

	dial := func() net.Conn {
		c, err := net.DialTimeout("tcp", inner.Addr().String(), 5*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		c.SetDeadline(time.Now().Add(5 * time.Second))
		return c
	}
	dial()
	first := <-accepted
	answer, err := io.ReadAll(dial())
	if err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 503 ") || !strings.HasSuffix(string(answer), "\r\n\r\ntoo many connections\n") {
		t.Fatalf("one too many was answered %q, %v", answer, err)
	}
	if n := testutil.ToFloat64(l.refused); n != 1 {
		t.Fatalf("%v refusals counted", n)
	}
	first.Close()
	first.Close() // a second close gives no second place
	dial()
	second := <-accepted
	defer second.Close()
	if l.open.Load() != 1 {
		t.Fatalf("%d open", l.open.Load())
	}
}
