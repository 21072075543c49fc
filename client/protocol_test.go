package client_test

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"

	"github.com/rollcall-io/rollcall/client"
)

// protocol are scenarios that hold against every server of the protocol.
var protocol = map[string]func(t *testing.T, servers []string){
	"values":       protocolValues,
	"update":       protocolUpdate,
	"disabled":     protocolDisabled,
	"persistent":   protocolPersistent,
	"removed":      protocolRemoved,
	"stays alive":  protocolStaysAlive,
	"batch, close": protocolBatch,
	"subscribe":    protocolSubscribe,
	"names":        protocolNames,
}

func TestProtocol_Rollcall(t *testing.T) {
	_, servers := cluster(t, nil)
	runProtocol(t, servers, nil)
}

// rnacosCannot are the scenarios that r-nacos 0.8.8 fails, and why.
var rnacosCannot = map[string]string{
	"removed": "a beat of an unknown instance registers it, with weight 1 and without metadata, and is never answered 20404",
}

// TestProtocol_RNacos runs against r-nacos, found by ROLLCALL_TEST_RNACOS or in the PATH.
func TestProtocol_RNacos(t *testing.T) {
	binary, err := exec.LookPath(cmp.Or(os.Getenv("ROLLCALL_TEST_RNACOS"), "rnacos"))
	if err != nil {
		t.Skip("no r-nacos here: set ROLLCALL_TEST_RNACOS to the binary; TestProtocol_Rollcall runs the same scenarios")
	}
	runProtocol(t, []string{startRNacos(t, binary)}, rnacosCannot)
}

func runProtocol(t *testing.T, servers []string, cannot map[string]string) {
	for name, scenario := range protocol {
		t.Run(name, func(t *testing.T) {
			if why, known := cannot[name]; known {
				t.Skip("this server cannot: " + why)
			}
			scenario(t, servers)
		})
	}
}

// lowPort is a free port below those that the system gives to outgoing connections.
func lowPort(t *testing.T) string {
	t.Helper()
	for range 100 {
		port := fmt.Sprint(20_000 + rand.IntN(12_000))
		if ln, err := net.Listen("tcp", "127.0.0.1:"+port); err == nil {
			must(t, ln.Close())
			return port
		}
	}
	t.Fatal("no free port")
	return ""
}

func startRNacos(t *testing.T, binary string) (server string) {
	t.Helper()
	ports := []string{lowPort(t), lowPort(t), lowPort(t)}
	cmd := exec.Command(binary)
	cmd.Env = append(os.Environ(), "RNACOS_HTTP_PORT="+ports[0], "RNACOS_GRPC_PORT="+ports[1], "RNACOS_HTTP_CONSOLE_PORT="+ports[2],
		"RNACOS_DATA_DIR="+t.TempDir(), "RNACOS_RAFT_NODE_ID=1", "RNACOS_RAFT_NODE_ADDR=127.0.0.1:"+ports[1], "RNACOS_RAFT_AUTO_INIT=true", "RUST_LOG=warn")
	must(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended
		_ = cmd.Wait()
	})
	server = "http://127.0.0.1:" + ports[0]
	pool := &http.Transport{}
	t.Cleanup(pool.CloseIdleConnections)
	until(t, "r-nacos ready", func() bool {
		resp, err := (&http.Client{Transport: pool}).Get(server + "/nacos/v1/ns/instance/list?serviceName=x")
		if err != nil {
			return false
		}
		defer resp.Body.Close()
		_, err = io.Copy(io.Discard, resp.Body)
		return err == nil && resp.StatusCode == http.StatusOK
	})
	return server
}

// pollFast hears of changes wherever stream and push are missing or slow.
func pollFast(o *client.Options) { o.PollInterval = 100 * time.Millisecond }

func followed(t *testing.T, c *client.Client, service string) *client.Service {
	t.Helper()
	s, err := c.Follow(t.Context(), client.ServiceName{Name: service})
	must(t, err)
	t.Cleanup(s.Close)
	return s
}

func protocolValues(t *testing.T, servers []string) {
	c := newClient(t, pollFast, servers...)
	meta := map[string]string{"a;b%c+d": `{"ü":"&= "}`, "version": "1"}
	r := client.Registration{Service: "values", Group: "G", Cluster: "C1", IP: "10.0.0.1", Port: 443, Weight: 0.5, Metadata: meta}
	must(t, c.Register(t.Context(), r))
	s := followed(t, c, "G@@values")
	until(t, "instance", func() bool { return healthy(s) == 1 })
	i, err := s.Pick()
	must(t, err)
	if i.Addr() != "10.0.0.1:443" || i.Weight != 0.5 || i.Cluster != "C1" || fmt.Sprint(i.Metadata) != fmt.Sprint(meta) || !i.Ephemeral {
		t.Errorf("%+v", i)
	}
}

func protocolUpdate(t *testing.T, servers []string) {
	c := newClient(t, pollFast, servers...)
	r := client.Registration{Service: "update", IP: "10.0.0.1", Port: 80, Metadata: map[string]string{"v": "1"}}
	if err := c.Update(t.Context(), r); !errors.Is(err, client.ErrUnknown) {
		t.Errorf("update before registration: %v", err)
	}
	must(t, c.Register(t.Context(), r))
	s := followed(t, c, "update")
	r.Weight, r.Metadata = 4, map[string]string{"v": "2"}
	must(t, c.Update(t.Context(), r))
	until(t, "new values", func() bool { i, err := s.Pick(); return err == nil && i.Weight == 4 && i.Metadata["v"] == "2" })
}

func protocolDisabled(t *testing.T, servers []string) {
	c := newClient(t, pollFast, servers...)
	r := client.Registration{Service: "disabled", IP: "10.0.0.1", Port: 80, Disabled: true}
	must(t, c.RegisterAll(t.Context(), []client.Registration{r, {Service: "disabled", IP: "10.0.0.2", Port: 80}}))
	s := followed(t, c, "disabled")
	until(t, "the enabled one alone", func() bool { return healthy(s) == 1 && s.Snapshot().Healthy()[0].IP == "10.0.0.2" })
	r.Disabled = false
	must(t, c.Update(t.Context(), r))
	until(t, "both", func() bool { return healthy(s) == 2 })
}

func protocolPersistent(t *testing.T, servers []string) {
	c := newClient(t, pollFast, servers...)
	r := client.Registration{Service: "persistent", IP: "10.0.0.1", Port: 80, Persistent: true}
	must(t, c.Register(t.Context(), r))
	s := followed(t, c, "persistent")
	until(t, "instance", func() bool { all := s.Snapshot().All(); return len(all) == 1 && !all[0].Ephemeral })
	must(t, c.Deregister(t.Context(), r.Key()))
	until(t, "instance gone", func() bool { return len(s.Snapshot().All()) == 0 })
}

// What somebody else deregisters comes back by its beats.
func protocolRemoved(t *testing.T, servers []string) {
	c, other := newClient(t, nil, servers...), newClient(t, pollFast, servers...)
	r := steady("removed", 80)
	r.Weight = 3
	must(t, c.Register(t.Context(), r))
	must(t, other.Register(t.Context(), r))
	s := followed(t, other, "removed")
	until(t, "instance", func() bool { return healthy(s) == 1 })
	w := &watcher{}
	s.Subscribe(w.event)
	must(t, other.Deregister(t.Context(), r.Key()))
	until(t, "instance removed", func() bool { w.mu.Lock(); defer w.mu.Unlock(); return len(w.lost) == 1 })
	until(t, "instance back", func() bool { return healthy(s) == 1 })
	if i, err := s.Pick(); err != nil || i.Weight != 3 {
		t.Errorf("it came back as %+v, %v", i, err)
	}
}

func protocolStaysAlive(t *testing.T, servers []string) {
	c := newClient(t, pollFast, servers...)
	must(t, c.Register(t.Context(), steady("alive", 80)))
	s := followed(t, c, "alive")
	until(t, "instance", func() bool { return healthy(s) == 1 })
	throughout(t, 5*time.Second, "healthy all the time", func() bool { return healthy(s) == 1 })
}

func protocolBatch(t *testing.T, servers []string) {
	c, other := newClient(t, nil, servers...), newClient(t, pollFast, servers...)
	var all []client.Registration
	for i := range 100 {
		all = append(all, client.Registration{Service: "batch", IP: "10.0.0.1", Port: 80 + i})
	}
	must(t, c.RegisterAll(t.Context(), all))
	s := followed(t, other, "batch")
	until(t, "all", func() bool { return healthy(s) == 100 })
	must(t, c.Close(t.Context()))
	until(t, "none", func() bool { return len(s.Snapshot().All()) == 0 })
}

// With the client's own choice of stream, push and polling, as the server has them.
func protocolSubscribe(t *testing.T, servers []string) {
	provider, consumer := newClient(t, nil, servers...), newClient(t, nil, servers...)
	s := followed(t, consumer, "subscribe")
	m := &mirror{t: t, state: map[string]float64{}}
	s.Subscribe(m.event)
	want := map[string]float64{}
	for i := range 5 {
		r := client.Registration{Service: "subscribe", IP: "10.0.0.1", Port: 80 + i, Weight: float64(i + 1)}
		must(t, provider.Register(t.Context(), r))
		want[fmt.Sprintf("10.0.0.1:%d", r.Port)] = r.Weight
	}
	until(t, "all", func() bool { return m.is(want) })
	must(t, provider.Deregister(t.Context(), client.Key{Service: "subscribe", IP: "10.0.0.1", Port: 82}))
	delete(want, "10.0.0.1:82")
	until(t, "one less", func() bool { return m.is(want) })
}

func protocolNames(t *testing.T, servers []string) {
	c := newClient(t, nil, servers...)
	for _, name := range []string{"n-1", "n-2", "n-3"} {
		must(t, c.Register(t.Context(), client.Registration{Service: name, Group: "names", IP: "10.0.0.1", Port: 80}))
	}
	until(t, "names", func() bool {
		names, err := c.ServiceNames(t.Context(), "names")
		slices.Sort(names)
		return err == nil && slices.Equal(names, []string{"n-1", "n-2", "n-3"})
	})
}
