package app

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rollcall-io/rollcall/httpapi"
	"github.com/rollcall-io/rollcall/push"
	"github.com/rollcall-io/rollcall/raftnode"
	"github.com/rollcall-io/rollcall/registry"
)

const (
	// pushTopic is what pushers of different nodes talk about.
	pushTopic = "push"
	// pushLag is how far behind a leader a node may be and still push. The lag is seen
	// twice a second, so a node that keeps up under load can show most of one.
	pushLag = 3 * time.Second
)

// newPusher builds the UDP pusher. The HTTP face renders for it and is reached through n:
// nothing is pushed before Start.
func (n *Node) newPusher(metrics prometheus.Registerer) (*push.Pusher, error) {
	o := push.DefaultOptions()
	o.State, o.Renderer, o.Peers = n.state, pushLists{n}, pushPeers{n.raft}
	o.Current = n.current
	o.Addr = n.opts.pushAddr()
	o.Logger, o.Metrics = n.log.Named("push"), metrics
	return push.New(o)
}

// newWatches builds the streams of events and lets them hear of every change.
func (n *Node) newWatches(metrics prometheus.Registerer) (*push.Watches, error) {
	o := push.DefaultWatchOptions()
	o.State, o.Metrics = n.state, metrics
	w, err := push.NewWatches(o)
	if err != nil {
		return nil, err
	}
	n.state.ListenEvents(w)
	return w, nil
}

// watcher is push.Watches under the types that the HTTP face uses.
type watcher struct{ watches *push.Watches }

// Watch is httpapi.Watcher.
func (w watcher) Watch(q registry.Watch) (httpapi.WatchStream, error) {
	s, err := w.watches.Watch(q)
	if err != nil {
		return nil, err
	}
	return s, nil
}

// current tells whether what this node has applied is worth telling.
func (n *Node) current() bool {
	return n.raft.Ready() == nil && time.Duration(n.raft.LagMs())*time.Millisecond < pushLag
}

// pushLists renders through the HTTP face, which is built after the pusher.
type pushLists struct{ n *Node }

// PushList is push.Renderer.
func (l pushLists) PushList(s *registry.Service, clusters string, grouped bool) []byte {
	return l.n.api.PushList(s, clusters, grouped)
}

// pushPeers asks other nodes' pushers over the peer port.
type pushPeers struct{ raft *raftnode.Node }

// Ask is push.Peers.
func (p pushPeers) Ask(ctx context.Context, question []byte) (answers [][]byte) {
	for _, a := range p.raft.AskOthers(ctx, pushTopic, question) {
		answers = append(answers, a)
	}
	return answers
}

// answerPush answers other nodes' pushers.
func (n *Node) answerPush(_ context.Context, question []byte) ([]byte, error) {
	return n.pusher.Answer(question)
}
