package raftnode

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/hashicorp/raft"

	"github.com/rollcall-io/rollcall/raftnode/mux"
)

const (
	transportPool    = 3
	transportTimeout = 10 * time.Second
	// hungAfter is how long a store call may last before this node falls silent.
	hungAfter = 5 * time.Second
)

// streams is Raft's way to the peer port.
type streams struct {
	net.Listener

	mux *mux.Mux
	// expect names the server that must answer at an address.
	expect func(raft.ServerAddress) (raft.ServerID, bool)
	// elsewhere are addresses at which members may be that have moved; see movedTo.
	elsewhere func() []string
}

// Dial connects to a member by the address in the configuration, a name looked up now.
// Whoever answers must be the very incarnation that the configuration has there. One that
// is not there may have moved while there was no leader to note it.
func (s *streams) Dial(address raft.ServerAddress, timeout time.Duration) (net.Conn, error) {
	id, known := s.expect(address)
	if !known {
		return nil, fmt.Errorf("dial peer %s: not in the configuration", address)
	}
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	c, err := s.mux.Dial(ctx, mux.Raft, string(address), identityOf(id))
	if err == nil {
		return c, nil
	}
	for _, other := range s.elsewhere() {
		if c, failed := s.mux.Dial(ctx, mux.Raft, other, identityOf(id)); failed == nil {
			return c, nil
		}
	}
	// A typed nil must not become a net.Conn.
	return nil, err
}

// errHung holds back Raft's calls while a store call hangs.
var errHung = errors.New("held back: the log store hangs")

// transport is Raft's network transport with four changes; for the last two see pipeline
// and news.
//
// Heartbeats go through Raft's main loop. With the handler that Raft sets for them the
// transport's own goroutine would change the term while the main loop of a leader is
// about to append, and the entry would get the term of another leader: replicas then
// differ for good (hashicorp/raft #695).
//
// While a store call lasts too long nothing is sent. Raft's heartbeats do not depend on
// the disk, so a leader whose disk hangs would stay leader and stop the cluster; silent,
// it is replaced, and learns of that when the call returns.
type transport struct {
	*raft.NetworkTransport

	hanging func() time.Duration
	news    *news
}

// newTransport makes a transport on connections of layer; it starts to take them. hanging
// tells how long the present store call lasts, telling is news.request. Close ends it.
func newTransport(c raft.NetworkTransportConfig, hanging func() time.Duration, telling func(entryID) *raft.AppendEntriesRequest) *transport {
	c.MsgpackUseNewTimeFormat = true
	t := &transport{NetworkTransport: raft.NewNetworkTransportWithConfig(&c), hanging: hanging}
	t.news = newNews(t.NetworkTransport.Consumer(), telling)
	return t
}

// Consumer gives what arrives for Raft.
func (t *transport) Consumer() <-chan raft.RPC { return t.news.out }

// Close takes no more connections, and hands no more calls to Raft.
func (t *transport) Close() error {
	t.news.close()
	return t.NetworkTransport.Close()
}

// SetHeartbeatHandler does nothing; see transport.
func (t *transport) SetHeartbeatHandler(func(raft.RPC)) {}

func (t *transport) held() error {
	if t.hanging() > hungAfter {
		return errHung
	}
	return nil
}

// AppendEntries sends entries or a heartbeat.
func (t *transport) AppendEntries(id raft.ServerID, target raft.ServerAddress, args *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse) error {
	if err := t.held(); err != nil {
		return err
	}
	return t.NetworkTransport.AppendEntries(id, target, args, resp)
}

// AppendEntriesPipeline opens a pipeline of appends.
func (t *transport) AppendEntriesPipeline(id raft.ServerID, target raft.ServerAddress) (raft.AppendPipeline, error) {
	if err := t.held(); err != nil {
		return nil, err
	}
	p, err := t.NetworkTransport.AppendEntriesPipeline(id, target)
	if err != nil {
		return nil, err
	}
	return newPipeline(p, t), nil
}

// RequestVote asks for a vote.
func (t *transport) RequestVote(id raft.ServerID, target raft.ServerAddress, args *raft.RequestVoteRequest, resp *raft.RequestVoteResponse) error {
	if err := t.held(); err != nil {
		return err
	}
	return t.NetworkTransport.RequestVote(id, target, args, resp)
}

// RequestPreVote asks whether a vote would be given.
func (t *transport) RequestPreVote(id raft.ServerID, target raft.ServerAddress, args *raft.RequestPreVoteRequest, resp *raft.RequestPreVoteResponse) error {
	if err := t.held(); err != nil {
		return err
	}
	return t.NetworkTransport.RequestPreVote(id, target, args, resp)
}

// InstallSnapshot sends a snapshot.
func (t *transport) InstallSnapshot(id raft.ServerID, target raft.ServerAddress, args *raft.InstallSnapshotRequest, resp *raft.InstallSnapshotResponse, data io.Reader) error {
	if err := t.held(); err != nil {
		return err
	}
	return t.NetworkTransport.InstallSnapshot(id, target, args, resp, data)
}
