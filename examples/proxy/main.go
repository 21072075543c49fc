// Proxy passes HTTP requests on by name: /orders/items/1 goes to an instance of the
// service orders as /items/1. Requests of one caller stay at one instance while it is
// there, by consistent hashing of the caller's address.
//
//	go run ./examples/proxy -servers 127.0.0.1:8848 -listen 127.0.0.1:8080
//	curl http://127.0.0.1:8080/hello/greeting
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/rollcall-io/rollcall/client"
	"github.com/rollcall-io/rollcall/client/httprr"
)

func main() {
	servers := flag.String("servers", "127.0.0.1:8848", "addresses of the registry, with commas")
	listen := flag.String("listen", "127.0.0.1:8080", "address to serve at")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if err := run(ctx, strings.Split(*servers, ","), *listen); err != nil {
		fmt.Fprintln(os.Stderr, "proxy:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, servers []string, listen string) error {
	c, err := client.New(client.Options{Servers: servers, UserAgent: "proxy-example"})
	if err != nil {
		return err
	}
	defer c.Close(context.Background())
	byName := httprr.New(c, httprr.Options{Choose: sameForCaller})
	defer byName.Close()
	server := &http.Server{Addr: listen, Handler: handler(byName), ReadHeaderTimeout: 5 * time.Second}
	ended := make(chan error, 1)
	go func() { ended <- server.ListenAndServe() }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	down, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := server.Shutdown(down); err != nil {
		return err
	}
	if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

func sameForCaller(s *client.Snapshot, r *http.Request) *client.Instance {
	host, _, _ := net.SplitHostPort(r.RemoteAddr) // what is no address is one caller too
	return s.PickByKey(host)
}

func handler(byName http.RoundTripper) http.Handler {
	proxy := &httputil.ReverseProxy{
		Transport: byName,
		Rewrite: func(r *httputil.ProxyRequest) {
			service, rest, _ := strings.Cut(strings.TrimPrefix(r.In.URL.Path, "/"), "/")
			r.Out.URL.Scheme, r.Out.URL.Host, r.Out.URL.Path, r.Out.URL.RawPath = httprr.Scheme, service, "/"+rest, ""
			r.Out.Host = service
			r.SetXForwarded()
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			status := http.StatusBadGateway
			if errors.Is(err, client.ErrNoInstance) {
				status = http.StatusServiceUnavailable
			}
			http.Error(w, err.Error(), status)
		},
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Trim(r.URL.Path, "/") == "" {
			http.Error(w, "ask for /SERVICE/PATH", http.StatusNotFound)
			return
		}
		proxy.ServeHTTP(w, r)
	})
}
