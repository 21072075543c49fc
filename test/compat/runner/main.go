// Command runner starts a three-node cluster of rollcall processes, runs programs that
// check it with unmodified Nacos clients, and prints a table of their checks. The
// programs get the nodes' addresses in COMPAT_SERVERS and an address at which they can
// ask for faults in COMPAT_FAULTS; they print "ok NAME", "FAIL NAME: why", figures, which
// are always shown, and notes.
package main

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// programTimeout bounds one program; programGrace is what its end may take then.
const (
	programTimeout = 6 * time.Minute
	programGrace   = 5 * time.Second
)

// settings are the command line.
type settings struct {
	binary    string
	rounds    int
	killEvery time.Duration
	only      string
	verbose   bool
	keep      bool
	programs  []string // NAME=COMMAND, split at spaces
}

// totals count checks over all programs and rounds.
type totals struct{ passed, failed int }

func main() {
	var s settings
	flag.StringVar(&s.binary, "rollcall", "", "the rollcall `binary`")
	flag.IntVar(&s.rounds, "rounds", 1, "how often to run everything, each time with a new cluster")
	flag.DurationVar(&s.killEvery, "kill-every", 0, "kill the leader at this interval while the checks run; 0 never")
	flag.StringVar(&s.only, "only", "", "run only checks whose name contains this `text`")
	flag.BoolVar(&s.verbose, "v", false, "show also what passes in later rounds, and notes")
	flag.BoolVar(&s.keep, "keep", false, "leave data and logs of a round with failures, and say where")
	flag.Parse()
	s.programs = flag.Args()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var sum totals
	start := time.Now()
	for round := 1; round <= s.rounds && ctx.Err() == nil; round++ {
		if err := runRound(ctx, s, round, &sum); err != nil {
			fmt.Printf("FAIL  round %d: %v\n", round, err)
			sum.failed++
		}
	}
	fmt.Printf("%d rounds in %s\n%d passed, %d failed\n", s.rounds, time.Since(start).Round(time.Second), sum.passed, sum.failed)
	if sum.failed > 0 || sum.passed == 0 {
		os.Exit(1)
	}
}

// runRound runs every program against one new cluster.
func runRound(ctx context.Context, s settings, round int, sum *totals) error {
	dir, err := os.MkdirTemp("", "rollcall-compat-")
	if err != nil {
		return err
	}
	before := sum.failed
	defer func() {
		if s.keep && sum.failed > before {
			fmt.Println("data and logs are left in", dir)
			return
		}
		_ = os.RemoveAll(dir)
	}()
	c, err := newCluster(s.binary, dir)
	if err != nil {
		return err
	}
	defer c.close()
	if err := c.startAll(); err != nil {
		showLogs(c)
		return err
	}
	fmt.Printf("round %d of %d, three nodes on %s\n", round, s.rounds, c.servers())
	err = check(ctx, s, c, sum)
	if err != nil || sum.failed > before {
		showLogs(c)
	}
	return err
}

// check runs every program, with the killer beside them if one is wanted.
func check(ctx context.Context, s settings, c *cluster, sum *totals) error {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	f := newFaults(c)
	address, err := f.serve(ctx, &wg)
	if err != nil {
		return err
	}
	killed := make(chan error, 1)
	if s.killEvery > 0 {
		wg.Go(func() { killed <- f.killLeaders(ctx, s.killEvery) })
	} else {
		killed <- nil
	}
	for _, p := range s.programs {
		name, command, _ := strings.Cut(p, "=")
		if err := runProgram(ctx, s, filepath.Join(c.dir, name), name, command, c.servers(), address, sum); err != nil {
			fmt.Printf("FAIL  %-8s ended: %v\n", name, err)
			sum.failed++
		}
	}
	cancel()
	if err := <-killed; err != nil {
		return fmt.Errorf("killing leaders: %w", err)
	}
	if s.killEvery > 0 {
		fmt.Printf("      the leader was killed %d times\n", f.kills)
	}
	return nil
}

// runProgram runs one program in a directory of its own and counts its checks.
func runProgram(ctx context.Context, s settings, dir, name, command, servers, faultsAt string, sum *totals) error {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, programTimeout)
	defer cancel()
	words := strings.Fields(command)
	cmd := exec.CommandContext(ctx, words[0], words[1:]...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = programGrace
	cmd.Dir = dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	cmd.Env = append(os.Environ(), "COMPAT_SERVERS="+servers, "COMPAT_FAULTS="+faultsAt, "COMPAT_ONLY="+s.only)
	if s.killEvery > 0 {
		cmd.Env = append(cmd.Env, "COMPAT_UNREST=1")
	}
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	report(out, name, s.verbose, sum)
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("%w\n%s", err, tail(errs.String(), 20))
	}
	return nil
}

// report copies a program's lines to the table and counts them.
func report(out io.Reader, name string, verbose bool, sum *totals) {
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		kind, rest, _ := strings.Cut(lines.Text(), " ")
		switch kind {
		case "ok":
			sum.passed++
			fmt.Printf("ok    %-8s %s\n", name, rest)
		case "FAIL":
			sum.failed++
			fmt.Printf("FAIL  %-8s %s\n", name, rest)
		case "figure":
			fmt.Printf("      %-8s %s\n", name, rest)
		default:
			if verbose {
				fmt.Printf("      %-8s %s\n", name, lines.Text())
			}
		}
	}
}

// showLogs prints the last lines of each node's log.
func showLogs(c *cluster) {
	for _, n := range c.nodes {
		if text, err := os.ReadFile(n.dir + ".log"); err == nil {
			fmt.Printf("--- log of %s\n%s\n", n.id, tail(string(text), 12))
		}
	}
}

func tail(text string, lines int) string {
	all := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
