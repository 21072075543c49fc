//go:build compose

// Package compose brings up the repository's docker-compose.yml with real containers and
// does to them what happens to containers. test/compose/run makes the image, starts a
// Docker daemon when none runs, and calls it; it needs the tag "compose" since a plain
// `go test ./...` must not need Docker.
package compose

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// otherSubnet is what the containers live in after the move: a range for documentation
// that no daemon picks by itself.
const otherSubnet = "198.51.100.0/24"

// scene is the stack with what must be found in it.
type scene struct {
	*stack
	kept []int // persistent instances of service "kept" that were acknowledged
}

const (
	kept   = "kept"   // persistent: must survive everything
	living = "living" // ephemeral, with beats
)

var alive = []int{1, 2, 3}

func TestCompose_SurvivesWhatHappensToContainers(t *testing.T) {
	s := &scene{stack: newStack(t)}
	t.Logf("three healthy containers after %s", s.up().Round(100*time.Millisecond))
	s.image()
	for _, n := range names {
		s.mustRegister(n)
	}
	for i, number := range alive {
		if err := register(names[i], living, number, true); err != nil {
			t.Fatal(err)
		}
	}
	beatFor(t, living, alive...)
	s.everywhere("registered through each node", names...)

	s.disconnectFollower()
	s.disconnectLeader()
	s.killLeader()
	s.moveAll()
}

// image checks what the containers are made of.
func (s *scene) image() {
	s.t.Helper()
	if user := s.inspect("n1", "{{.Config.User}}"); user == "" || strings.HasPrefix(user, "0") {
		s.t.Errorf("runs as user %q", user)
	}
	if out, err := s.try("docker", "exec", s.container("n1"), "/bin/sh", "-c", "true"); err == nil {
		s.t.Errorf("there is a shell in the image: %s", out)
	}
	if says := s.docker("exec", s.container("n1"), "/rollcall", "version"); !strings.HasPrefix(says, "rollcall ") || strings.Contains(says, "devel") {
		s.t.Errorf("version: %q", says)
	}
}

func (s *scene) mustRegister(node string) {
	s.t.Helper()
	number := len(s.kept) + 1
	if err := register(node, kept, number, false); err != nil {
		s.t.Fatalf("register %d through %s: %v", number, node, err)
	}
	s.kept = append(s.kept, number)
}

// registerSoon registers through a node that may have no leader yet.
func (s *scene) registerSoon(node string) time.Duration {
	s.t.Helper()
	number := len(s.kept) + 1
	took := s.until(fmt.Sprintf("registration through %s", node), func() bool { return register(node, kept, number, false) == nil })
	s.kept = append(s.kept, number)
	return took
}

// everywhere waits until the given nodes list all that was acknowledged.
func (s *scene) everywhere(when string, nodes ...string) {
	s.t.Helper()
	for _, n := range nodes {
		var ports, living []int
		var err error
		start := time.Now()
		for {
			if ports, err = list(n, kept); err == nil {
				living, err = list(n, "living")
			}
			if err == nil && slices.Equal(ports, s.kept) && slices.Equal(living, alive) {
				break
			}
			if time.Since(start) > patience {
				s.t.Fatalf("%s: %s lists %v and %v, want %v and %v; %v", when, n, ports, living, s.kept, alive, err)
			}
			<-time.After(pollStep)
		}
	}
	s.t.Logf("%s: %d persistent and %d beating instances on %s", when, len(s.kept), len(alive), strings.Join(nodes, " "))
}

func (s *scene) leaderAmong(nodes ...string) string {
	s.t.Helper()
	var found string
	s.until("leader", func() bool { found = leader(nodes...); return slices.Contains(nodes, found) })
	return found
}

func others(but string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(n string) bool { return n == but })
}

func (s *scene) disconnectFollower() {
	s.t.Helper()
	cut := others(s.leaderAmong(names...))[0]
	s.cut("follower", cut, func(rest []string) {
		for _, n := range rest {
			s.mustRegister(n) // at once: a lost follower is nobody's business
		}
	})
}

func (s *scene) disconnectLeader() {
	s.t.Helper()
	cut := s.leaderAmong(names...)
	s.cut("leader", cut, func(rest []string) {
		took := s.registerSoon(rest[0])
		s.t.Logf("a new leader took a registration %s after the leader was disconnected", took.Round(10*time.Millisecond))
		s.mustRegister(rest[1])
	})
}

// cut takes a node off the network, lets the others work, and puts it back.
func (s *scene) cut(what, node string, work func(rest []string)) {
	s.t.Helper()
	s.docker("network", "disconnect", s.network(), s.container(node))
	rest := others(node)
	work(rest)
	s.everywhere(what+" "+node+" disconnected", rest...)
	s.docker("network", "connect", "--alias", node, s.network(), s.container(node))
	s.waitHealthy(node)
	s.everywhere(what+" "+node+" connected again", names...)
}

func (s *scene) killLeader() {
	s.t.Helper()
	dead := s.leaderAmong(names...)
	s.docker("kill", s.container(dead))
	rest := others(dead)
	took := s.registerSoon(rest[0])
	s.t.Logf("a new leader took a registration %s after the leader's container was killed", took.Round(10*time.Millisecond))
	s.mustRegister(rest[1])
	s.everywhere("leader "+dead+" killed", rest...)
	s.up()
	s.everywhere("leader "+dead+" started again", names...)
}

// moveAll takes everything down and up again in a network with other addresses.
func (s *scene) moveAll() {
	s.t.Helper()
	before := make(map[string]string)
	for _, n := range names {
		before[n] = s.address(n)
	}
	start := time.Now()
	s.run(s.command("down")...)
	s.t.Logf("down took %s", time.Since(start).Round(100*time.Millisecond))
	override := filepath.Join(s.dir, "subnet.yml")
	text := "networks:\n  default:\n    ipam:\n      config:\n        - subnet: " + otherSubnet + "\n"
	if err := os.WriteFile(override, []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
	s.files = append(s.files, override)
	s.t.Logf("up with other addresses: healthy after %s", s.up().Round(100*time.Millisecond))
	for _, n := range names {
		if now := s.address(n); now == before[n] || !strings.HasPrefix(now, "198.51.100.") {
			s.t.Errorf("%s has address %s, before %s", n, now, before[n])
		}
	}
	s.everywhere("down and up with other addresses", names...)
	s.mustRegister("n2")
	s.everywhere("a further registration", names...)
}
