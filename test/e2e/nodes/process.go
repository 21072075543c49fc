package nodes

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// exitPatience is the time that a process has to end after SIGKILL.
const exitPatience = 20 * time.Second

// process is a running program. It is reaped by a goroutine of its own, which ends with
// it.
type process struct {
	cmd   *exec.Cmd
	ended chan struct{}
}

// spawn starts a program whose output is appended to the file log.
func spawn(log, program string, args ...string) (*process, error) {
	out, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer out.Close() // the child has its own
	p := &process{cmd: exec.Command(program, args...), ended: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = out, out
	p.cmd.Env = cleanEnvironment()
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		defer close(p.ended)
		_ = p.cmd.Wait() // how it ended is in its ProcessState
	}()
	return p, nil
}

// cleanEnvironment is the test's own without settings for rollcall.
func cleanEnvironment() []string {
	var env []string
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "ROLLCALL_") {
			env = append(env, v)
		}
	}
	return env
}

func (p *process) running() bool {
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

// rss is the memory that the process has in use, in bytes (Linux).
func (p *process) rss() (int, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", p.cmd.Process.Pid))
	if err != nil {
		return 0, err
	}
	var size, resident int
	if _, err := fmt.Sscan(string(text), &size, &resident); err != nil {
		return 0, err
	}
	return resident * os.Getpagesize(), nil
}

func (p *process) signal(s syscall.Signal) error { return p.cmd.Process.Signal(s) }

// wait returns the exit code once the process has ended, -1 when a signal ended it.
func (p *process) wait(patience time.Duration) (int, error) {
	select {
	case <-p.ended:
		return p.cmd.ProcessState.ExitCode(), nil
	case <-time.After(patience):
		return 0, fmt.Errorf("process %d still runs after %s", p.cmd.Process.Pid, patience)
	}
}

// kill ends the process whatever it is doing, stopped ones too, and waits for that.
func (p *process) kill() error {
	if !p.running() {
		return nil
	}
	if err := p.signal(syscall.SIGKILL); err != nil && p.running() {
		return err
	}
	_, err := p.wait(exitPatience)
	return err
}
