package httpapi

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/rollcall-io/rollcall/registry"
)

// discard is a response writer that costs nothing, so that a benchmark shows the
// handler's own time and allocations.
type discard struct{ header http.Header }

func (d *discard) Header() http.Header         { return d.header }
func (d *discard) Write(b []byte) (int, error) { return len(b), nil }
func (d *discard) WriteHeader(int)             {}
func (d *discard) WriteString(s string) (int, error) {
	return len(s), nil
}

var benchRequests = []struct{ name, method, target string }{
	{"List", http.MethodGet, "/nacos/v1/ns/instance/list?serviceName=l-svc-1&healthyOnly=true"},
	{"Beat", http.MethodPut, "/nacos/v1/ns/instance/beat?serviceName=l-svc-1&ip=10.9.0.1&port=8080&clusterName=DEFAULT"},
	{"Register", http.MethodPost, "/nacos/v1/ns/instance?serviceName=l-svc-1&ip=10.9.0.1&port=8080&weight=1&enabled=true&healthy=true" +
		"&ephemeral=true&clusterName=DEFAULT&metadata=%7B%22zone%22%3A%22a%22%7D"},
}

// benchServer has a service of ten instances, and writes and beats that cost nothing.
func benchServer(b *testing.B) *Server {
	s, f := newTestServer(b, nil)
	key := registry.NewServiceKey("", "", "l-svc-1")
	for i := range 10 {
		f.put(key, registry.Spec{Address: registry.Address{Cluster: "DEFAULT", IP: "10.9.0." + strconv.Itoa(i), Port: 8080},
			Enabled: true, Healthy: true, Ephemeral: true, Weight: 1, Metadata: registry.NewMetadata([]registry.Pair{{Key: "zone", Value: "a"}})})
	}
	s.opts.Writer = nothing{}
	s.opts.Beater = nothing{}
	return s
}

type nothing struct{}

func (nothing) Propose(context.Context, registry.Command) (registry.Result, error) {
	return registry.Result{}, nil
}

func (nothing) Beat(context.Context, registry.Beat) (registry.BeatReply, error) {
	return registry.BeatReply{Known: true, Interval: 5000, LightEnabled: true}, nil
}

// BenchmarkHandler calls the handlers directly.
func BenchmarkHandler(b *testing.B) {
	for _, br := range benchRequests {
		b.Run(br.name, func(b *testing.B) {
			s := benchServer(b)
			req, err := http.NewRequest(br.method, br.target, nil)
			if err != nil {
				b.Fatal(err)
			}
			req.Header.Set("User-Agent", "load/1")
			req.Header.Set("Accept", "*/*")
			w := &discard{http.Header{}}
			b.ReportAllocs()
			for b.Loop() {
				clear(w.header)
				s.engine.ServeHTTP(w, req)
			}
		})
	}
}

// BenchmarkLoopback drives a real server over loopback connections that stay open, and
// beside it a gin that answers each request with the same bytes and does nothing else:
// what is aimed at is 80 % of its rate.
func BenchmarkLoopback(b *testing.B) {
	for _, br := range benchRequests {
		request := fmt.Appendf(nil, "%s %s HTTP/1.1\r\nHost: x\r\nUser-Agent: load/1\r\nAccept: */*\r\nContent-Length: 0\r\n\r\n", br.method, br.target)
		b.Run(br.name, func(b *testing.B) { drive(b, startServer(b, benchServer(b)), request) })
		b.Run(br.name+"/bare-gin", func(b *testing.B) { drive(b, bareGin(b, br.method, br.target), request) })
	}
}

// drive sends one request again and again on 32 connections.
func drive(b *testing.B, address string, request []byte) {
	b.SetParallelism(16)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		c, err := net.Dial("tcp", address)
		if err != nil {
			b.Error(err)
			return
		}
		defer c.Close()
		r := bufio.NewReader(c)
		for pb.Next() {
			if _, err := c.Write(request); err != nil {
				b.Error(err)
				return
			}
			resp, err := http.ReadResponse(r, nil)
			if err != nil {
				b.Error(err)
				return
			}
			_, _ = io.Copy(io.Discard, resp.Body)
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "req/s")
}

// bareGin serves the answer that a node gives to a request, with nothing behind it.
func bareGin(b *testing.B, method, target string) (address string) {
	req := httptest.NewRequest(method, target, nil)
	w := httptest.NewRecorder()
	benchServer(b).engine.ServeHTTP(w, req)
	if w.Code != http.StatusOK {
		b.Fatalf("%s %s: %d %s", method, target, w.Code, w.Body)
	}
	engine, body, kind := gin.New(), w.Body.Bytes(), w.Header().Get("Content-Type")
	engine.Handle(method, req.URL.Path, func(c *gin.Context) { c.Data(http.StatusOK, kind, body) })
	server := httptest.NewServer(engine)
	b.Cleanup(server.Close)
	return server.Listener.Addr().String()
}

// startServer serves s on a free port until the test ends.
func startServer(t testing.TB, s *Server) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	server := s.HTTPServer(ctx)
	done := make(chan error, 1)
	go func() { done <- server.Serve(l) }()
	t.Cleanup(func() {
		cancel()
		// A connection whose request was refused lingers for half a second, in a goroutine
		// that Close does not wait for.
		bounded, stop := context.WithTimeout(context.Background(), 20*time.Second)
		defer stop()
		if err := server.Shutdown(bounded); err != nil {
			t.Error(err)
		}
		<-done
	})
	return l.Addr().String()
}
