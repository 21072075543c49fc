// Provider is an HTTP service that takes part in a registry: registered once it listens,
// kept alive by beats, gone from lists before it ends on SIGTERM or Ctrl-C.
//
//	go run ./examples/provider -servers 127.0.0.1:8848,127.0.0.1:8850 -service hello
package main

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/rollcall-io/rollcall/client"
)

func main() {
	servers := flag.String("servers", "127.0.0.1:8848", "addresses of the registry, with commas")
	service := flag.String("service", "hello", "name to register")
	listen := flag.String("listen", "127.0.0.1:0", "address to serve at")
	drain := flag.Duration("drain", time.Second, "how long to go on serving after leaving the lists")
	flag.Parse()
	if err := run(strings.Split(*servers, ","), *service, *listen, *drain); err != nil {
		fmt.Fprintln(os.Stderr, "provider:", err)
		os.Exit(1)
	}
}

func run(servers []string, service, listen string, drain time.Duration) error {
	logger := slog.Default()
	c, err := client.New(client.Options{Servers: servers, UserAgent: "provider-example", Logger: logger})
	if err != nil {
		return err
	}
	defer c.Close(context.Background())

	pid := os.Getpid()
	server := &http.Server{Addr: listen, ReadHeaderTimeout: 5 * time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "hello from process %d, you asked for %s\n", pid, r.URL.Path)
	})}
	return c.ListenAndServe(context.Background(), server, client.RegistrarOptions{
		Registrations: []client.Registration{{Service: service, Metadata: map[string]string{"version": "1"}}},
		Drain:         drain,
		Registered:    func(err error) { logger.Info("registered", "service", service, "error", err) },
		Deregistered:  func(err error) { logger.Info("deregistered", "service", service, "error", err) },
	})
}
