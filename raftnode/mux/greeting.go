package mux

import (
	"errors"
	"fmt"
)

// Kind is what a connection is for.
type Kind byte

// The kinds. The numbers are for good.
const (
	Raft Kind = 1
	RPC  Kind = 2
)

// String is the kind's name for logs and metrics.
func (k Kind) String() string {
	switch k {
	case Raft:
		return "raft"
	case RPC:
		return "rpc"
	}
	return fmt.Sprintf("kind %d", byte(k))
}

// Identity is how a node names itself. Cluster is empty before the cluster is formed.
type Identity struct {
	Node        string
	Incarnation string
	Cluster     string
}

// greeting is what each side says of itself. Target is the identity that the dialling
// side wants to reach, empty when it does not care.
type greeting struct {
	kind   Kind
	self   Identity
	target Identity
	// refusal is filled by the accepting side; empty means welcome.
	refusal string
}

const (
	greetingVersion = 1
	maxGreeting     = 1024
	maxRefusal      = 255
)

var errGreeting = errors.New("malformed greeting")

// encode writes version, kind and the texts, each with one byte of length.
func (g greeting) encode() ([]byte, error) {
	b := []byte{greetingVersion, byte(g.kind)}
	if len(g.refusal) > maxRefusal {
		g.refusal = g.refusal[:maxRefusal]
	}
	for _, s := range g.texts() {
		if len(*s) > 255 {
			return nil, fmt.Errorf("greeting: %q has %d bytes, the limit is 255", *s, len(*s))
		}
		b = append(append(b, byte(len(*s))), *s...)
	}
	if len(b) > maxGreeting {
		return nil, fmt.Errorf("greeting has %d bytes, the limit is %d", len(b), maxGreeting)
	}
	return b, nil
}

// decodeGreeting reads what encode wrote and accepts nothing else.
func decodeGreeting(b []byte) (greeting, error) {
	var g greeting
	if len(b) < 2 || b[0] != greetingVersion {
		return g, errGreeting
	}
	g.kind = Kind(b[1])
	b = b[2:]
	for _, s := range g.texts() {
		if len(b) == 0 || len(b)-1 < int(b[0]) {
			return g, errGreeting
		}
		end := 1 + int(b[0])
		*s = string(b[1:end])
		b = b[end:]
	}
	if len(b) != 0 || g.kind != Raft && g.kind != RPC {
		return g, errGreeting
	}
	return g, nil
}

func (g *greeting) texts() []*string {
	return []*string{
		&g.self.Node, &g.self.Incarnation, &g.self.Cluster,
		&g.target.Node, &g.target.Incarnation, &g.refusal,
	}
}
