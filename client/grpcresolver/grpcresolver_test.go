package grpcresolver_test

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/rollcall-io/rollcall/client"
	"github.com/rollcall-io/rollcall/client/fake"
	"github.com/rollcall-io/rollcall/client/grpcresolver"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func registry(t *testing.T) (*fake.Server, *client.Client) {
	t.Helper()
	s, err := fake.Start()
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.New(client.Options{Servers: []string{s.URL()}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(c.Close(context.Background()), s.Stop()); err != nil {
			t.Error(err)
		}
	})
	return s, c
}

// backend is a gRPC server and its instance.
func backend(t *testing.T) (*grpc.Server, fake.Instance) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g := grpc.NewServer()
	healthpb.RegisterHealthServer(g, health.NewServer())
	done := make(chan error, 1)
	go func() { done <- g.Serve(ln) }()
	t.Cleanup(func() {
		g.Stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return g, fake.Instance{Service: "G@@checks", IP: "127.0.0.1", Port: ln.Addr().(*net.TCPAddr).Port, Weight: 1, Enabled: true, Healthy: true}
}

func dial(t *testing.T, c *client.Client, target string) healthpb.HealthClient {
	t.Helper()
	conn, err := grpc.NewClient(target, grpc.WithResolvers(grpcresolver.New(c)), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	})
	return healthpb.NewHealthClient(conn)
}

func check(t *testing.T, h healthpb.HealthClient) error {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	_, err := h.Check(ctx, &healthpb.HealthCheckRequest{})
	return err
}

func TestResolver_FollowsTheService(t *testing.T) {
	s, c := registry(t)
	first, one := backend(t)
	s.Put(one)
	h := dial(t, c, "rollcall:///G/checks")
	if err := check(t, h); err != nil {
		t.Fatal(err)
	}
	_, two := backend(t)
	s.Put(two)
	s.Remove(one)
	first.Stop()
	deadline := time.Now().Add(20 * time.Second)
	for err := check(t, h); err != nil; err = check(t, h) {
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}

func TestResolver_NobodyFailsInsteadOfWaiting(t *testing.T) {
	_, c := registry(t)
	if err := check(t, dial(t, c, "rollcall:///nobody")); status.Code(err) != codes.Unavailable {
		t.Fatal(err)
	}
}

func TestResolver_BadTargets(t *testing.T) {
	_, c := registry(t)
	for _, target := range []string{"rollcall:///", "rollcall:///a/", "rollcall:///a/b/c/d", "rollcall:///a/b/"} {
		conn, err := grpc.NewClient(target, grpc.WithResolvers(grpcresolver.New(c)), grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err == nil { // told at the first call
			err = check(t, healthpb.NewHealthClient(conn))
			conn.Close()
		}
		if err == nil || status.Code(err) == codes.DeadlineExceeded {
			t.Errorf("%s: %v", target, err)
		}
	}
}

// A call without a deadline used to wait for ever while no registry answered.
func TestResolver_WithoutARegistryCallsFailUntilThereIsOne(t *testing.T) {
	s, c := registry(t)
	s.Pause()
	h := dial(t, c, "rollcall:///G/checks")
	if err := check(t, h); status.Code(err) != codes.Unavailable {
		t.Fatal(err)
	}
	_, one := backend(t)
	s.Put(one)
	if err := s.Restart(); err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(30 * time.Second)
	for err := check(t, h); err != nil; err = check(t, h) {
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}
