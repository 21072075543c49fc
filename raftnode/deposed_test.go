package raftnode

import (
	"errors"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"github.com/rollcall-io/rollcall/raftnode/mux"
)

// scriptedPeers are one real Raft and two members that grant and accept whatever it asks.
type scriptedPeers struct {
	t     *testing.T
	wraps map[raft.ServerID]*transport
	addrs map[raft.ServerID]raft.ServerAddress
	raft  *raft.Raft
	log   *raft.InmemStore
	quit  chan struct{}
	group sync.WaitGroup
}

// newScriptedPeers makes "a/1" lead. withFastPath keeps the handler that Raft gives the
// library's own transport.
func newScriptedPeers(t *testing.T, withFastPath bool) *scriptedPeers {
	p := &scriptedPeers{
		t: t, wraps: map[raft.ServerID]*transport{}, addrs: map[raft.ServerID]raft.ServerAddress{},
		log: raft.NewInmemStore(), quit: make(chan struct{}),
	}
	var servers []raft.Server
	for _, id := range []raft.ServerID{"a/1", "b/1", "c/1"} {
		p.open(id)
		servers = append(servers, raft.Server{ID: id, Address: p.addrs[id], Suffrage: raft.Voter})
	}
	for _, id := range []raft.ServerID{"b/1", "c/1"} {
		p.group.Go(func() { p.agree(p.wraps[id]) })
	}
	config := raft.DefaultConfig()
	config.LocalID, config.Logger = "a/1", hclog.NewNullLogger()
	election := calmElection
	if withFastPath {
		election = 300 * time.Millisecond
	}
	config.HeartbeatTimeout, config.ElectionTimeout, config.LeaderLeaseTimeout = election, election, election
	var trans raft.Transport = p.wraps["a/1"]
	if withFastPath {
		trans = p.wraps["a/1"].NetworkTransport
	}
	snapshots := raft.NewInmemSnapshotStore()
	if err := raft.BootstrapCluster(config, p.log, p.log, snapshots, trans, raft.Configuration{Servers: servers}); err != nil {
		t.Fatal(err)
	}
	var err error
	if p.raft, err = raft.NewRaft(config, newTestFSM(), p.log, p.log, snapshots, trans); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.close)
	if withFastPath { // calls other than heartbeats are not sure to reach Raft
		return p
	}
	// The first election at once: no other may come before the test deposes the winner.
	now := &raft.TimeoutNowRequest{RPCHeader: raft.RPCHeader{ProtocolVersion: 3, ID: []byte("b/1"), Addr: []byte(p.addrs["b/1"])}}
	if err := p.wraps["b/1"].TimeoutNow("a/1", p.addrs["a/1"], now, &raft.TimeoutNowResponse{}); err != nil {
		t.Fatal(err)
	}
	return p
}

func (p *scriptedPeers) open(id raft.ServerID) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		p.t.Fatal(err)
	}
	m := mux.New(mux.Options{
		Listener: l, Advertise: l.Addr().String(), Secret: []byte("a-secret-of-the-test"),
		Self: func() mux.Identity { return identityOf(id) },
	})
	layer := &streams{Listener: m.Raft(), mux: m, expect: func(address raft.ServerAddress) (raft.ServerID, bool) {
		for id, a := range p.addrs {
			if a == address {
				return id, true
			}
		}
		return "", false
	}}
	p.addrs[id] = raft.ServerAddress(l.Addr().String())
	p.wraps[id] = newTransport(raft.NetworkTransportConfig{
		Stream: layer, MaxPool: 1, Timeout: 2 * time.Second, Logger: hclog.NewNullLogger(),
	}, func() time.Duration { return 0 }, nil)
	p.t.Cleanup(func() { m.Close() })
}

// agree answers everything as a willing follower of the asked term would.
func (p *scriptedPeers) agree(tr *transport) {
	for {
		select {
		case <-p.quit:
			return
		case rpc := <-tr.Consumer():
			switch c := rpc.Command.(type) {
			case *raft.RequestPreVoteRequest:
				rpc.Respond(&raft.RequestPreVoteResponse{Term: c.Term, Granted: true}, nil)
			case *raft.RequestVoteRequest:
				rpc.Respond(&raft.RequestVoteResponse{Term: c.Term, Granted: true}, nil)
			case *raft.AppendEntriesRequest:
				rpc.Respond(&raft.AppendEntriesResponse{Term: c.Term, LastLog: c.PrevLogEntry + uint64(len(c.Entries)), Success: true}, nil)
			default:
				rpc.Respond(nil, errors.New("not in the script"))
			}
		}
	}
}

func (p *scriptedPeers) close() {
	if err := p.raft.Shutdown().Error(); err != nil {
		p.t.Error(err)
	}
	for _, tr := range p.wraps {
		tr.Close()
	}
	close(p.quit)
	p.group.Wait()
}

// depose lets "a/1" lead in peace, then lets "b/1" be the leader of the next term by one
// heartbeat, and proposes on "a/1" the moment the heartbeat is answered. It returns the
// term that now leads, and the outcome.
func (p *scriptedPeers) depose() (term uint64, err error) {
	eventually(p.t, 10*time.Second, "a leader", func() error {
		if p.raft.State() != raft.Leader || p.raft.AppliedIndex() < p.raft.LastIndex() || p.raft.LastIndex() < 2 {
			return errors.New("not yet")
		}
		return nil
	})
	term = p.raft.CurrentTerm() + 1
	beat := &raft.AppendEntriesRequest{
		RPCHeader: raft.RPCHeader{ProtocolVersion: 3, ID: []byte("b/1"), Addr: []byte(p.addrs["b/1"])}, Term: term,
	}
	var resp raft.AppendEntriesResponse
	if err := p.wraps["b/1"].AppendEntries("a/1", p.addrs["a/1"], beat, &resp); err != nil || !resp.Success {
		return term, fmt.Errorf("heartbeat: %v %+v", err, resp)
	}
	return term, p.raft.Apply([]byte("late"), time.Second).Error()
}

// ownEntryUnder tells whether the log holds an entry of "late" with that term.
func (p *scriptedPeers) ownEntryUnder(term uint64) bool {
	last, err := p.log.LastIndex()
	if err != nil {
		p.t.Fatal(err)
	}
	for i := uint64(1); i <= last; i++ {
		var l raft.Log
		if err := p.log.GetLog(i, &l); err == nil && string(l.Data) == "late" && l.Term == term {
			return true
		}
	}
	return false
}

// TestTransport_DeposedLeaderAppendsNothingUnderTheNewTerm constructs hashicorp/raft #695:
// a leader learns of a newer term and is given a command at once. With the handler that
// Raft sets, the term changes beside the main loop, and the command is appended as if it
// came from the new leader: two entries with one index and term, which no later check
// tells apart. Through the main loop it is refused.
func TestTransport_DeposedLeaderAppendsNothingUnderTheNewTerm(t *testing.T) {
	t.Run("ours", func(t *testing.T) {
		for range 3 {
			p := newScriptedPeers(t, false)
			term, err := p.depose()
			if !errors.Is(err, raft.ErrNotLeader) {
				t.Errorf("a deposed leader answers a command with %v, want %v", err, raft.ErrNotLeader)
			}
			if p.ownEntryUnder(term) {
				t.Fatalf("the deposed leader appended under term %d", term)
			}
		}
	})
	// If this fails the library has been mended, and the wrapper may go.
	t.Run("the library's", func(t *testing.T) {
		for range 20 {
			p := newScriptedPeers(t, true)
			if term, _ := p.depose(); p.ownEntryUnder(term) {
				return
			}
		}
		t.Error("the handler of the library no longer appends under the new term")
	})
}
