//go:build linux

package netns

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// echo answers connections to node i with what they send, until the test ends.
func (w *Network) echo(i int) {
	w.t.Helper()
	var ln net.Listener
	w.must(inside(w.hosts[i].space, func() (err error) {
		ln, err = net.Listen("tcp", ":"+peerPort)
		return err
	}))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			_, _ = io.Copy(conn, conn) // one at a time
			_ = conn.Close()
		}
	}()
	w.t.Cleanup(func() { _ = ln.Close(); <-ended })
}

const (
	// patience is for what must arrive, however busy the machine is, silence for what must not.
	patience = 10 * time.Second
	silence  = 700 * time.Millisecond
)

// call sends a byte from one namespace to node i and waits for it to come back.
func (w *Network) call(space string, i int, patience time.Duration) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	conn, err := dial(ctx, space, "tcp", w.hosts[i].address+":"+peerPort)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	start := time.Now()
	if err := conn.SetDeadline(start.Add(patience)); err != nil {
		return 0, err
	}
	if _, err := conn.Write([]byte{1}); err != nil {
		return 0, err
	}
	_, err = io.ReadFull(conn, make([]byte, 1))
	return time.Since(start), err
}

// reaches tells whether a call gets an answer; what does not must be silent.
func (w *Network) reaches(space string, i int, patience time.Duration) bool {
	w.t.Helper()
	_, err := w.call(space, i, patience)
	var timeout net.Error
	if err != nil && (!errors.As(err, &timeout) || !timeout.Timeout()) {
		w.t.Errorf("call from %s to node %d: %v, want an answer or silence", space, i, err)
	}
	return err == nil
}

func TestCut_IsSilentAndLeavesTheOtherDirectionAndTheClients(t *testing.T) {
	w := New(t, 3)
	for i := range w.hosts {
		w.echo(i)
	}
	want := func(when string, cut ...[2]int) {
		t.Helper()
		for i := range w.hosts {
			for j := range w.hosts {
				if i == j {
					continue
				}
				open := true
				for _, c := range cut { // a call needs both directions
					open = open && c != [2]int{i, j} && c != [2]int{j, i}
				}
				wait := silence
				if open {
					wait = patience
				}
				if got := w.reaches(w.hosts[i].space, j, wait); got != open {
					t.Errorf("%s: node %d reaches %d: %v, want %v", when, i, j, got, open)
				}
			}
			if !w.reaches(w.hub(), i, patience) {
				t.Errorf("%s: clients do not reach node %d", when, i)
			}
		}
	}
	want("at first")
	w.Cut(0, 1)
	want("one direction", [2]int{0, 1})
	w.Heal()
	w.Isolate(2)
	want("one node alone", [2]int{0, 2}, [2]int{1, 2})
	w.Heal()
	want("healed")
}

// TestCut_OneDirection: what goes the other way arrives.
func TestCut_OneDirection(t *testing.T) {
	w := New(t, 2)
	var in net.PacketConn
	w.must(inside(w.hosts[1].space, func() (err error) {
		in, err = net.ListenPacket("udp", ":9000")
		return err
	}))
	defer in.Close()
	arrives := func(wait time.Duration) bool {
		out, err := dial(context.Background(), w.hosts[0].space, "udp", w.hosts[1].address+":9000")
		w.must(err)
		defer out.Close()
		_, err = out.Write([]byte{1})
		w.must(err)
		w.must(in.SetReadDeadline(time.Now().Add(wait)))
		_, _, err = in.ReadFrom(make([]byte, 1))
		return err == nil
	}
	w.Cut(1, 0)
	if !arrives(patience) {
		t.Error("what goes the way that is not cut does not arrive")
	}
	w.Heal()
	w.Cut(0, 1)
	if arrives(silence) {
		t.Error("what goes the way that is cut arrives")
	}
}

func TestNew_TwoNetworksNeverMeet(t *testing.T) {
	a, b := New(t, 2), New(t, 2)
	a.echo(1)
	if !a.reaches(a.hosts[0].space, 1, patience) {
		t.Error("no way inside a network")
	}
	if _, err := b.call(b.hosts[0].space, 1, silence); err == nil {
		t.Error("a call inside one network is answered in the other, which has the same addresses")
	}
}

func TestMove_IsReachedAtTheNewAddressOnly(t *testing.T) {
	w := New(t, 2)
	w.echo(1)
	old := w.hosts[1]
	w.Move(1)
	if !w.reaches(w.hosts[0].space, 1, patience) {
		t.Error("not reached at the new address")
	}
	moved := w.hosts[1]
	w.hosts[1] = old
	if _, err := w.call(w.hosts[0].space, 1, silence); err == nil {
		t.Error("reached at the old address still")
	}
	w.hosts[1] = moved
	program, args := w.Command(0, "cat", []string{"/etc/hosts"})
	out, err := exec.Command(program, args...).Output()
	if want := fmt.Sprintf("127.0.0.1 localhost\n%s n1\n%s n2\n", w.hosts[0].address, moved.address); err != nil || string(out) != want {
		t.Errorf("hosts of node 0: %q, %v, want %q", out, err, want)
	}
}

func TestSlow_TakesItsTimeAndLeavesClientsAlone(t *testing.T) {
	w := New(t, 2)
	w.echo(1)
	w.Slow(Shape{Delay: 50 * time.Millisecond, Jitter: 30 * time.Millisecond})
	var total time.Duration
	const calls = 10
	for range calls {
		took, err := w.call(w.hosts[0].space, 1, patience)
		w.must(err)
		if took < 40*time.Millisecond {
			t.Errorf("there and back in %s, want 40 ms at least", took)
		}
		total += took
	}
	t.Logf("%s there and back on average", total/calls)
	if fast := w.quickest(w.hub(), 1); fast > 40*time.Millisecond {
		t.Errorf("a client is answered after %s at best", fast)
	}
	w.Straighten()
	if fast := w.quickest(w.hosts[0].space, 1); fast > 40*time.Millisecond {
		t.Errorf("answered after %s at best when links are straight again", fast)
	}
}

// quickest of a few calls: the machine may be busy during one.
func (w *Network) quickest(space string, i int) time.Duration {
	w.t.Helper()
	best := time.Hour
	for range 5 {
		took, err := w.call(space, i, patience)
		w.must(err)
		best = min(best, took)
	}
	return best
}

func TestSlow_LosesAndLimits(t *testing.T) {
	w := New(t, 2)
	w.echo(1)
	w.Slow(Shape{Loss: 1})
	if w.reaches(w.hosts[0].space, 1, silence) {
		t.Error("a link that loses everything carries a call")
	}
	w.Straighten()
	w.Slow(Shape{Rate: 1000})
	start := time.Now()
	if _, err := w.call(w.hosts[0].space, 1, patience); err != nil || time.Since(start) < 100*time.Millisecond {
		t.Errorf("a call over a link of 1,000 bytes a second took %s, %v", time.Since(start), err)
	}
}

// TestSweep_RemovesWhatADeadProcessLeft: a namespace of its own, a process in it, its hosts.
func TestSweep_RemovesWhatADeadProcessLeft(t *testing.T) {
	New(t, 1) // or this test is skipped
	dead := exec.Command("true")
	if err := dead.Run(); err != nil {
		t.Fatal(err)
	}
	space := fmt.Sprintf("%s%d-1-n1", mark, dead.Process.Pid)
	if err := errors.Join(ip("netns", "add", space), os.MkdirAll(filepath.Join(hostsRoot, space), 0o755)); err != nil {
		t.Fatal(err)
	}
	left := exec.Command("ip", "netns", "exec", space, "sleep", "100")
	if err := left.Start(); err != nil {
		t.Fatal(err)
	}
	entered := func() bool {
		pids, err := exec.Command("ip", "netns", "pids", space).Output()
		return err == nil && len(pids) > 0
	}
	for deadline := time.Now().Add(10 * time.Second); !entered() && time.Now().Before(deadline); {
		<-time.After(10 * time.Millisecond)
	}
	New(t, 1)
	_ = left.Wait() // by a signal
	if status, ok := left.ProcessState.Sys().(syscall.WaitStatus); !ok || status.Signal() != syscall.SIGKILL {
		t.Errorf("what ran there ended by %v", left.ProcessState)
	}
	for _, path := range []string{filepath.Join(spaces, space), filepath.Join(hostsRoot, space)} {
		if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is still there: %v", path, err)
		}
	}
}
