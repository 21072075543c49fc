// Consumer finds a service in a registry, prints every change and calls it by name, a
// request each interval.
//
//	go run ./examples/consumer -servers 127.0.0.1:8848 -service hello
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net/http"
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
	service := flag.String("service", "hello", "service to call")
	every := flag.Duration("every", time.Second, "time between calls")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if err := run(ctx, os.Stdout, strings.Split(*servers, ","), *service, *every); err != nil {
		fmt.Fprintln(os.Stderr, "consumer:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer, servers []string, service string, every time.Duration) error {
	c, err := client.New(client.Options{Servers: servers, UserAgent: "consumer-example"})
	if err != nil {
		return err
	}
	defer c.Close(context.Background())
	followed, err := c.Follow(ctx, client.ServiceName{Name: service})
	if err != nil {
		return err
	}
	followed.Subscribe(func(e client.Event) {
		fmt.Fprintf(out, "%d added, %d removed, %d modified: %d healthy\n", len(e.Added), len(e.Removed), len(e.Modified), len(e.Snapshot.Healthy()))
	})

	byName := httprr.New(c, httprr.Options{})
	defer byName.Close()
	web := &http.Client{Transport: byName, Timeout: 5 * time.Second}
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
			fmt.Fprint(out, call(ctx, web, service))
		}
	}
}

// call is what the service says, or why it does not.
func call(ctx context.Context, web *http.Client, service string) string {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "rollcall://"+service+"/greeting", nil)
	if err != nil {
		return err.Error() + "\n"
	}
	resp, err := web.Do(req)
	if err != nil {
		return err.Error() + "\n"
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 1<<10))
	if err != nil {
		return err.Error() + "\n"
	}
	return string(body)
}
