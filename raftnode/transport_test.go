package raftnode

import (
	"errors"
	"net"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"github.com/rollcall-io/rollcall/raftnode/mux"
)

// testTransport makes a transport on a port of its own, whose peer is known as "b/1".
func testTransport(t *testing.T, node string) (*transport, raft.ServerAddress) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	m := mux.New(mux.Options{
		Listener: l, Advertise: l.Addr().String(), Secret: []byte("a-secret-of-the-test"),
		Self: func() mux.Identity { return mux.Identity{Node: node, Incarnation: "1"} },
	})
	layer := &streams{Listener: m.Raft(), mux: m, expect: func(raft.ServerAddress) (raft.ServerID, bool) { return "b/1", true }}
	tr := newTransport(raft.NetworkTransportConfig{
		Stream: layer, MaxPool: 1, Timeout: 2 * time.Second, Logger: hclog.NewNullLogger(),
	}, func() time.Duration { return 0 }, nil)
	t.Cleanup(func() {
		tr.Close()
		m.Close()
	})
	return tr, raft.ServerAddress(l.Addr().String())
}

func heartbeat() *raft.AppendEntriesRequest {
	return &raft.AppendEntriesRequest{
		RPCHeader: raft.RPCHeader{ProtocolVersion: 3, ID: []byte("a/1"), Addr: []byte("a:1")}, Term: 7,
	}
}

// TestTransport_HeartbeatsPassThroughTheMainLoop sends what Raft sends as a heartbeat
// to a node whose Raft has set its fast path. With that in force the term would change
// beside the main loop of a leader.
func TestTransport_HeartbeatsPassThroughTheMainLoop(t *testing.T) {
	for _, row := range []struct {
		name string
		set  func(*transport, func(raft.RPC))
		fast bool
	}{
		{"ours", func(tr *transport, f func(raft.RPC)) { tr.SetHeartbeatHandler(f) }, false},
		{"the library's", func(tr *transport, f func(raft.RPC)) { tr.NetworkTransport.SetHeartbeatHandler(f) }, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			a, _ := testTransport(t, "a")
			b, address := testTransport(t, "b")
			fast := make(chan struct{}, 1)
			row.set(b, func(rpc raft.RPC) {
				fast <- struct{}{}
				rpc.Respond(&raft.AppendEntriesResponse{Success: true}, nil)
			})
			sent := make(chan error, 1)
			go func() { sent <- a.AppendEntries("b/1", address, heartbeat(), &raft.AppendEntriesResponse{}) }()
			select {
			case rpc := <-b.Consumer():
				if row.fast {
					t.Error("the fast path is not what it was")
				}
				rpc.Respond(&raft.AppendEntriesResponse{Success: true}, nil)
			case <-fast:
				if !row.fast {
					t.Error("a heartbeat took the fast path")
				}
			case <-time.After(5 * time.Second):
				t.Fatal("no heartbeat")
			}
			if err := <-sent; err != nil {
				t.Fatal(err)
			}
		})
	}
}

func TestTransport_FallsSilentWhileTheStoreHangs(t *testing.T) {
	a, _ := testTransport(t, "a")
	_, address := testTransport(t, "b")
	a.hanging = func() time.Duration { return hungAfter + time.Second }
	for name, call := range map[string]func() error{
		"append":   func() error { return a.AppendEntries("b/1", address, heartbeat(), &raft.AppendEntriesResponse{}) },
		"pipeline": func() error { _, err := a.AppendEntriesPipeline("b/1", address); return err },
		"vote": func() error {
			return a.RequestVote("b/1", address, &raft.RequestVoteRequest{}, &raft.RequestVoteResponse{})
		},
		"pre-vote": func() error {
			return a.RequestPreVote("b/1", address, &raft.RequestPreVoteRequest{}, &raft.RequestPreVoteResponse{})
		},
		"snapshot": func() error {
			return a.InstallSnapshot("b/1", address, &raft.InstallSnapshotRequest{}, &raft.InstallSnapshotResponse{}, nil)
		},
	} {
		if err := call(); !errors.Is(err, errHung) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// fullPipeline is a pipeline without room: its sender waits until it is closed.
type fullPipeline struct {
	answers chan raft.AppendFuture
	closed  chan struct{}
}

func (p *fullPipeline) AppendEntries(*raft.AppendEntriesRequest, *raft.AppendEntriesResponse) (raft.AppendFuture, error) {
	<-p.closed
	return nil, raft.ErrPipelineShutdown
}

func (p *fullPipeline) Consumer() <-chan raft.AppendFuture { return p.answers }

func (p *fullPipeline) Close() error {
	close(p.closed)
	return nil
}

// answer is a complete answer.
type answer struct {
	raft.AppendFuture
	err  error
	resp raft.AppendEntriesResponse
}

func (a *answer) Error() error                          { return a.err }
func (a *answer) Request() *raft.AppendEntriesRequest   { return heartbeat() }
func (a *answer) Response() *raft.AppendEntriesResponse { return &a.resp }

// TestPipeline_FreesItsSenderWhenNobodyReads: Raft's reader leaves at such answers, and
// its sender would wait for room for ever.
func TestPipeline_FreesItsSenderWhenNobodyReads(t *testing.T) {
	for name, last := range map[string]*answer{
		"failure":    {err: errors.New("connection lost")},
		"refusal":    {resp: raft.AppendEntriesResponse{Term: 7}},
		"newer term": {resp: raft.AppendEntriesResponse{Term: 8, Success: true}},
	} {
		t.Run(name, func(t *testing.T) {
			inner := &fullPipeline{answers: make(chan raft.AppendFuture), closed: make(chan struct{})}
			p := newPipeline(inner, &transport{hanging: func() time.Duration { return 0 }})
			sent := make(chan error, 1)
			go func() {
				_, err := p.AppendEntries(heartbeat(), &raft.AppendEntriesResponse{})
				sent <- err
			}()
			inner.answers <- &answer{resp: raft.AppendEntriesResponse{Term: 7, Success: true}}
			<-p.Consumer()
			inner.answers <- last
			if got := <-p.Consumer(); got != raft.AppendFuture(last) {
				t.Errorf("reader got %v", got)
			}
			select {
			case err := <-sent:
				if !errors.Is(err, raft.ErrPipelineShutdown) {
					t.Errorf("sender got %v", err)
				}
			case <-time.After(5 * time.Second):
				t.Fatal("the sender still waits")
			}
		})
	}
}

func TestTransferWatch_EndsOnlyAfterALongRow(t *testing.T) {
	w := &transferWatch{limit: 5 * time.Second}
	start := time.Unix(100, 0)
	if w.refused(start) || w.refused(start.Add(4*time.Second)) {
		t.Error("too early")
	}
	w.passed()
	if w.refused(start.Add(6 * time.Second)) {
		t.Error("an entry went through in between")
	}
	if !w.refused(start.Add(12 * time.Second)) {
		t.Error("a transfer that never ends goes unnoticed")
	}
}
