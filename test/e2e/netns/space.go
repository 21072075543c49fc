//go:build linux

package netns

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

const (
	// mark begins the names of all namespaces that tests make; the process's id follows.
	mark = "rollcall-e2e-"
	// spaces is where `ip` keeps namespaces by name.
	spaces = "/run/netns"
)

// missing tells what a network needs and is not there.
func missing() string {
	if os.Geteuid() != 0 {
		return "root"
	}
	for _, command := range []string{"ip", "iptables"} {
		if _, err := exec.LookPath(command); err != nil {
			return "the command " + command
		}
	}
	return ""
}

// allowed makes the namespace with a bridge, or tells what the kernel refuses.
func allowed(hub string) error {
	if err := ip("netns", "add", hub); err != nil {
		return err
	}
	if err := ip("-n", hub, "link", "add", "bridge", "type", "bridge"); err != nil {
		return err
	}
	return iptables(hub, "-L", "INPUT", "-n")
}

func ip(args ...string) error { return run("ip", args...) }

// iptables changes the rules of a namespace; -w waits for another that does the same.
func iptables(space string, args ...string) error {
	return run("ip", append([]string{"netns", "exec", space, "iptables", "-w"}, args...)...)
}

func run(program string, args ...string) error {
	if out, err := exec.Command(program, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w: %s", program, strings.Join(args, " "), err, out)
	}
	return nil
}

// sweep removes the namespaces that chosen names, and ends what runs in them. Another
// process may do the same at the same time: what is gone is no error.
func sweep(chosen func(space string) bool) {
	entries, err := os.ReadDir(spaces)
	if err != nil {
		return // there never was one
	}
	for _, e := range entries {
		space := e.Name()
		if !strings.HasPrefix(space, mark) || !chosen(space) {
			continue
		}
		pids, _ := exec.Command("ip", "netns", "pids", space).Output()
		for _, text := range strings.Fields(string(pids)) {
			if pid, err := strconv.Atoi(text); err == nil && pid != os.Getpid() {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
		_ = ip("netns", "del", space)
		_ = os.RemoveAll(filepath.Join(hostsRoot, space))
	}
	_ = os.Remove(hostsRoot) // unless somebody else has something there
}

// abandoned tells whether the process that made a namespace is gone.
func abandoned(space string) bool {
	text, _, _ := strings.Cut(strings.TrimPrefix(space, mark), "-")
	pid, err := strconv.Atoi(text)
	return err == nil && errors.Is(syscall.Kill(pid, 0), syscall.ESRCH)
}

// inside calls f on a thread that is in a namespace: sockets and devices that f makes
// itself, not in another goroutine, belong there and stay there.
func inside(space string, f func() error) error {
	runtime.LockOSThread()
	home, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		runtime.UnlockOSThread()
		return err
	}
	defer home.Close()
	there, err := os.Open(filepath.Join(spaces, space))
	if err != nil {
		runtime.UnlockOSThread()
		return err
	}
	defer there.Close()
	if err := unix.Setns(int(there.Fd()), unix.CLONE_NEWNET); err != nil {
		runtime.UnlockOSThread()
		return fmt.Errorf("enter %s: %w", space, err)
	}
	err = f()
	if back := unix.Setns(int(home.Fd()), unix.CLONE_NEWNET); back != nil {
		return fmt.Errorf("leave %s: %w", space, back) // the thread stays locked, and ends with the goroutine
	}
	runtime.UnlockOSThread()
	return err
}

// dial connects from a namespace to an address without a name.
func dial(ctx context.Context, space, network, address string) (conn net.Conn, err error) {
	err = inside(space, func() error {
		var d net.Dialer // for one address without a name it makes the socket right here
		conn, err = d.DialContext(ctx, network, address)
		return err
	})
	if err != nil && conn != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return conn, err
}
