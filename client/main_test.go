package client_test

import (
	"context"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/rollcall-io/rollcall/client"
	"github.com/rollcall-io/rollcall/client/fake"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const patience = 30 * time.Second

// until polls a condition and fails the test when it stays false.
func until(t testing.TB, what string, cond func() bool) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for !cond() {
		if time.Now().After(deadline) {
			t.Fatalf("no %s within %s", what, patience)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// throughout polls a condition that must hold all the time, for what must not happen.
func throughout(t testing.TB, d time.Duration, what string, cond func() bool) {
	t.Helper()
	for deadline := time.Now().Add(d); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if !cond() {
			t.Fatalf("not %s", what)
		}
	}
}

func startFake(t testing.TB) *fake.Server {
	t.Helper()
	s, err := fake.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// newClient is a client of these servers that is closed when the test ends.
func newClient(t testing.TB, tweak func(*client.Options), servers ...string) *client.Client {
	t.Helper()
	o := client.Options{Servers: servers, Timeout: 20 * time.Second} // an election on a busy machine, and another
	if tweak != nil {
		tweak(&o)
	}
	c, err := client.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeNow(c) })
	return c
}

// closeNow does not wait for deregistrations that may have no server.
func closeNow(c *client.Client) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	_ = c.Close(ctx)
}

// shortly is for calls that must fail for want of time; those that must succeed have all of
// Options.Timeout, as a busy machine may need.
func shortly(t testing.TB) context.Context { return lasting(t, 200*time.Millisecond) }

func lasting(t testing.TB, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// quick is a registration that beats every 100 ms.
func quick(service, ip string, port int) client.Registration {
	return client.Registration{Service: service, IP: ip, Port: port, Metadata: map[string]string{
		client.MetaBeatInterval: "100", client.MetaBeatTimeout: "1000", client.MetaDeleteTimeout: "2000",
	}}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
