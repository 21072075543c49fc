package client_test

import (
	"context"
	"fmt"
	"log"
	"net/http"

	"github.com/rollcall-io/rollcall/client"
	"github.com/rollcall-io/rollcall/client/fake"
)

// exampleRegistry stands for the registry that a service is configured with.
func exampleRegistry() *fake.Server {
	registry, err := fake.Start()
	if err != nil {
		log.Fatal(err)
	}
	return registry
}

func Example() {
	registry := exampleRegistry()
	defer registry.Stop()
	ctx := context.Background()

	c, err := client.New(client.Options{Servers: []string{registry.URL()}})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close(ctx)

	// Known from here on, and kept alive until Close.
	if err := c.Register(ctx, client.Registration{Service: "orders", IP: "10.0.0.7", Port: 8080}); err != nil {
		log.Fatal(err)
	}

	orders, err := c.Follow(ctx, client.ServiceName{Name: "orders"})
	if err != nil {
		log.Fatal(err)
	}
	defer orders.Close()
	instance, err := orders.Pick()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(instance.Addr())
	// Output: 10.0.0.7:8080
}

func ExampleService_Subscribe() {
	registry := exampleRegistry()
	defer registry.Stop()
	ctx := context.Background()
	c, err := client.New(client.Options{Servers: []string{registry.URL()}})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close(ctx)
	orders, err := c.Follow(ctx, client.ServiceName{Name: "orders"})
	if err != nil {
		log.Fatal(err)
	}
	defer orders.Close()

	told := make(chan struct{})
	stop := orders.Subscribe(func(e client.Event) {
		for _, i := range e.Added {
			fmt.Println("came:", i.Addr())
			close(told)
		}
	})
	defer stop()
	registry.Put(fake.Instance{Service: "orders", IP: "10.0.0.7", Port: 8080, Weight: 1, Enabled: true, Healthy: true})
	<-told
	// Output: came: 10.0.0.7:8080
}

func ExampleSnapshot_PickByKey() {
	registry := exampleRegistry()
	defer registry.Stop()
	for port := range 3 {
		registry.Put(fake.Instance{Service: "carts", IP: "10.0.0.7", Port: 8080 + port, Weight: 1, Enabled: true, Healthy: true})
	}
	ctx := context.Background()
	c, err := client.New(client.Options{Servers: []string{registry.URL()}})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close(ctx)
	carts, err := c.Follow(ctx, client.ServiceName{Name: "carts"})
	if err != nil {
		log.Fatal(err)
	}
	defer carts.Close()
	before := carts.Snapshot().PickByKey("user-1")
	registry.Put(fake.Instance{Service: "payments", IP: "10.0.0.8", Port: 80, Weight: 1}) // whatever happens elsewhere
	if err := carts.Refresh(ctx); err != nil {
		log.Fatal(err)
	}
	fmt.Println(carts.Snapshot().PickByKey("user-1") == before)
	// Output: true
}

// The whole life of an HTTP service.
func ExampleClient_ListenAndServe() {
	registry := exampleRegistry()
	defer registry.Stop()
	c, err := client.New(client.Options{Servers: []string{registry.URL()}})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close(context.Background())

	ctx, stop := context.WithCancel(context.Background()) // or SIGTERM, in a real process
	server := &http.Server{Addr: "127.0.0.1:0"}
	err = c.ListenAndServe(ctx, server, client.RegistrarOptions{
		Registrations: []client.Registration{{Service: "orders"}},
		Registered: func(error) {
			fmt.Println("in the list:", len(registry.Instances("orders")))
			stop()
		},
		Deregistered: func(error) { fmt.Println("in the list:", len(registry.Instances("orders"))) },
	})
	fmt.Println("error:", err)
	// Output:
	// in the list: 1
	// in the list: 0
	// error: <nil>
}
