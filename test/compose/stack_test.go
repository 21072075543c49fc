//go:build compose

package compose

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

const (
	// patience bounds every wait: the health check of a container runs every 5 s, and a
	// container that comes back needs two of them.
	patience = 60 * time.Second
	pollStep = 100 * time.Millisecond
	// commandTimeout bounds one docker or compose command; a stop takes up to 15 s a node.
	commandTimeout = 2 * time.Minute
)

var names = []string{"n1", "n2", "n3"}

// stack is the compose project as the repository ships it, under a name of its own.
type stack struct {
	t       *testing.T
	compose []string // the command: docker-compose, or docker compose
	project string
	files   []string
	dir     string // for overriding files; outlives the project
}

// newStack finds the compose command and removes the project, with all its data, when
// the test ends.
func newStack(t *testing.T) *stack {
	t.Helper()
	s := &stack{t: t, compose: []string{"docker-compose"}, project: fmt.Sprintf("rollcall-test-%d", os.Getpid()), dir: t.TempDir()}
	if _, err := exec.LookPath("docker-compose"); err != nil {
		s.compose = []string{"docker", "compose"}
	}
	file, err := filepath.Abs("../../docker-compose.yml")
	if err != nil {
		t.Fatal(err)
	}
	s.files = []string{file}
	t.Cleanup(func() {
		if t.Failed() {
			logs, _ := s.try(s.command("logs", "--no-color", "--tail", "30")...)
			t.Log(logs)
		}
		s.run(s.command("down", "-v", "--remove-orphans", "-t", "5")...)
	})
	return s
}

func (s *stack) command(args ...string) []string {
	all := slices.Concat(s.compose, []string{"-p", s.project})
	for _, f := range s.files {
		all = append(all, "-f", f)
	}
	return append(all, args...)
}

// try runs a command and returns its output and error.
func (s *stack) try(args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), commandTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	return strings.TrimSpace(out.String()), err
}

func (s *stack) run(args ...string) string {
	s.t.Helper()
	out, err := s.try(args...)
	if err != nil {
		s.t.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

// docker runs the docker command.
func (s *stack) docker(args ...string) string {
	s.t.Helper()
	return s.run(append([]string{"docker"}, args...)...)
}

// up starts what does not run and waits until every node is healthy.
func (s *stack) up() time.Duration {
	s.t.Helper()
	start := time.Now()
	s.run(s.command("up", "-d", "--no-build")...)
	for _, n := range names {
		s.waitHealthy(n)
	}
	return time.Since(start)
}

// container is the id of a node's container, running or not.
func (s *stack) container(node string) string {
	s.t.Helper()
	id := s.docker("ps", "-aq", "--no-trunc", "--filter", "label=com.docker.compose.project="+s.project,
		"--filter", "label=com.docker.compose.service="+node)
	if id == "" || strings.Contains(id, "\n") {
		s.t.Fatalf("containers of %s: %q", node, id)
	}
	return id
}

func (s *stack) inspect(node, format string) string {
	s.t.Helper()
	return s.docker("inspect", "--format", format, s.container(node))
}

func (s *stack) waitHealthy(node string) {
	s.t.Helper()
	s.until(node+" healthy", func() bool { return s.inspect(node, "{{.State.Health.Status}}") == "healthy" })
}

// network is the name of the project's network.
func (s *stack) network() string { return s.project + "_default" }

// address is the node's address inside the network.
func (s *stack) address(node string) string {
	s.t.Helper()
	return s.inspect(node, `{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}`)
}

// until polls cond with a deadline and returns how long it took.
func (s *stack) until(what string, cond func() bool) time.Duration {
	s.t.Helper()
	start := time.Now()
	tick := time.NewTicker(pollStep)
	defer tick.Stop()
	for !cond() {
		if time.Since(start) > patience {
			s.t.Fatalf("no %s within %s", what, patience)
		}
		<-tick.C
	}
	return time.Since(start)
}
