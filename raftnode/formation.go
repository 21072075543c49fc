package raftnode

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"github.com/rollcall-io/rollcall/internal/wire/peerpb"
)

const (
	helloTimeout = time.Second
	helloPause   = 150 * time.Millisecond
)

// formation is what a node knows before Raft runs: whom it has reached.
type formation struct {
	mu   sync.Mutex
	view []*peerpb.Member // sorted by id, this node included
}

func (f *formation) set(view []*peerpb.Member) {
	f.mu.Lock()
	f.view = view
	f.mu.Unlock()
}

func (f *formation) get() []*peerpb.Member {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.view
}

// form decides how this node comes to run Raft, and returns when it may. A node that
// has Raft state goes on with it, unless that is a first configuration that was never
// used; see settleFounding. One without waits until it finds itself in the
// configuration of a node that has state, having asked to be taken in; or until all
// nodes that are to form the cluster have nothing and have reached the same nodes, and
// then exactly one of them, the first by id, makes the configuration. So no flag can
// form a second cluster beside one that exists, and no two nodes can form two.
func (n *Node) form(ctx context.Context) error {
	has, err := n.store.HasState()
	if err != nil {
		return err
	}
	if has {
		c, only, err := n.store.Founding()
		if err != nil || !only {
			return err
		}
		if holds, err := n.settleFounding(ctx, c); err != nil || holds {
			return err
		}
	}
	if !n.opts.clustered() {
		return n.bootstrap([]*peerpb.Member{n.self()})
	}
	n.log.Info("no state yet, looking for the cluster", "join", n.opts.Join, "expect", n.opts.BootstrapExpect)
	if named := 1 + len(n.joinList()); named < n.opts.BootstrapExpect {
		n.log.Warn("the join list names too few nodes to make a new cluster", "named", named, "expect", n.opts.BootstrapExpect)
	}
	for {
		answers, complete := n.helloAll(ctx)
		if err := ctx.Err(); err != nil {
			return err
		}
		switch {
		case n.memberIn(answers):
			return nil
		case anyCluster(answers):
			n.askToJoin(ctx, answers)
		case complete && n.mayBootstrap(answers):
			return n.bootstrap(n.formation.get())
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(helloPause + rand.N(helloPause)):
		}
	}
}

// self is this node as others see it.
func (n *Node) self() *peerpb.Member {
	return &peerpb.Member{Id: n.id, Incarnation: n.incarnation, Address: n.advertise}
}

// helloAll asks every node of the join list what it knows, all at once, and notes who
// was reached. complete tells whether all answered, and under different ids.
func (n *Node) helloAll(ctx context.Context) (answers []*peerpb.HelloResponse, complete bool) {
	others := n.joinList()
	all := make([]*peerpb.HelloResponse, len(others))
	var group sync.WaitGroup
	for i, address := range others {
		group.Go(func() { all[i] = n.hello(ctx, address) })
	}
	group.Wait()
	complete = true
	view := []*peerpb.Member{n.self()}
	for _, a := range all {
		switch {
		case a == nil:
			complete = false
			continue
		case a.Node.Id == n.id && a.Node.Incarnation == n.incarnation:
			continue // this node under another spelling of its address
		case slices.ContainsFunc(view, func(m *peerpb.Member) bool { return m.Id == a.Node.Id && m.Incarnation != a.Node.Incarnation }):
			n.warnOnce("two nodes have one id", "id", a.Node.Id, "address", a.Node.Address)
			complete = false
			continue
		case slices.ContainsFunc(view, func(m *peerpb.Member) bool { return m.Id == a.Node.Id }):
			continue
		}
		view = append(view, a.Node)
		answers = append(answers, a)
	}
	slices.SortFunc(view, func(a, b *peerpb.Member) int { return strings.Compare(a.Id, b.Id) })
	n.formation.set(view)
	return answers, complete
}

// joinList are the addresses of the others.
func (n *Node) joinList() []string {
	var others []string
	for _, a := range n.opts.Join {
		if a != n.advertise && !slices.Contains(others, a) {
			others = append(others, a)
		}
	}
	return others
}

// hello asks one node; nil when it does not answer sensibly.
func (n *Node) hello(ctx context.Context, address string) *peerpb.HelloResponse {
	ctx, cancel := context.WithTimeout(ctx, helloTimeout)
	defer cancel()
	client, err := n.peers.client(address)
	if err != nil {
		return nil
	}
	resp, err := client.Hello(ctx, &peerpb.HelloRequest{Node: n.self()})
	if err != nil {
		n.warnOnce("node of the join list does not answer", "address", address, "err", err)
		return nil
	}
	if !validNodeID(resp.Node.GetId()) || resp.Node.Incarnation == "" || resp.Node.Address == "" {
		return nil
	}
	return resp
}

// memberIn tells whether one of the answers has this very incarnation as a member.
func (n *Node) memberIn(answers []*peerpb.HelloResponse) bool {
	for _, a := range answers {
		for _, m := range a.Members {
			if m.Id == n.id && m.Incarnation == n.incarnation {
				return true
			}
		}
	}
	return false
}

// anyCluster tells whether one of the answers comes from a cluster that exists.
func anyCluster(answers []*peerpb.HelloResponse) bool {
	return slices.ContainsFunc(answers, func(a *peerpb.HelloResponse) bool { return !a.Empty || len(a.Members) > 0 })
}

// mayBootstrap tells whether this node is the one that forms the cluster now: all
// nodes of the view are empty, expect their number and have reached the same nodes.
func (n *Node) mayBootstrap(answers []*peerpb.HelloResponse) bool {
	view := n.formation.get()
	if n.clusterID() != "" || len(view) != n.opts.BootstrapExpect || len(answers) != len(view)-1 {
		if len(view) > n.opts.BootstrapExpect {
			n.warnOnce("more nodes than expected, not forming a cluster", "reached", len(view), "expect", n.opts.BootstrapExpect)
		}
		return false
	}
	for _, a := range answers {
		if !a.Empty || a.Cluster != "" || int(a.Expect) != n.opts.BootstrapExpect || !sameNodes(a.View, view) {
			return false
		}
	}
	return view[0].Id == n.id
}

func sameNodes(a, b []*peerpb.Member) bool {
	return slices.EqualFunc(a, b, func(x, y *peerpb.Member) bool {
		return x.GetId() == y.GetId() && x.GetIncarnation() == y.GetIncarnation()
	})
}

// bootstrap writes the first configuration.
func (n *Node) bootstrap(members []*peerpb.Member) error {
	var c raft.Configuration
	for _, m := range members {
		c.Servers = append(c.Servers, raft.Server{
			ID: serverID(m.Id, m.Incarnation), Address: raft.ServerAddress(m.Address), Suffrage: raft.Voter,
		})
	}
	n.log.Info("forming a new cluster", "members", c.Servers)
	return n.writeConfiguration(c)
}

// askToJoin asks to be taken into the cluster of one of the answers.
func (n *Node) askToJoin(ctx context.Context, answers []*peerpb.HelloResponse) {
	for _, a := range answers {
		if a.Empty && len(a.Members) == 0 {
			continue
		}
		address := a.Node.Address
		if a.Leader.GetAddress() != "" {
			address = a.Leader.Address
		}
		if n.join(ctx, address) {
			return
		}
	}
}

// joinTimeout bounds one attempt to join: two changes of the configuration.
const joinTimeout = 5 * time.Second

// join asks the node at an address, and then the leader that it names; true once the
// leader has taken this node in under its present address.
func (n *Node) join(ctx context.Context, address string) bool {
	ctx, cancel := context.WithTimeout(ctx, joinTimeout)
	defer cancel()
	for range 2 {
		client, err := n.peers.client(address)
		if err != nil {
			return false
		}
		resp, err := client.Join(ctx, &peerpb.JoinRequest{Node: n.self(), Cluster: n.clusterID()})
		switch {
		case err != nil:
			n.log.Debug("join call failed", "address", address, "err", err)
			return false
		case resp.Refusal != "":
			n.warnOnce("the leader does not take this node in", "reason", resp.Refusal)
			return false
		case !resp.NotLeader:
			return true
		case resp.Leader.GetAddress() == "" || resp.Leader.Address == address:
			return false
		}
		address = resp.Leader.Address
	}
	return false
}

// runAnnounce tells the leader this node's address after each start, until it has
// noted it: a changed address heals, and a node that the configuration lost returns.
func (n *Node) runAnnounce(ctx context.Context) {
	for {
		v := n.tracker.load()
		if v.self {
			return // the leader looks after its own address
		}
		targets := n.joinList()
		if v.id != "" {
			targets = []string{v.address}
		}
		for _, address := range targets {
			if n.join(ctx, address) {
				return
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Second):
		}
	}
}

// Hello answers a node that looks for its cluster.
func (s *server) Hello(_ context.Context, _ *peerpb.HelloRequest) (*peerpb.HelloResponse, error) {
	n := s.node
	resp := &peerpb.HelloResponse{
		Node: n.self(), Cluster: n.clusterID(), Empty: !n.decided.Load() || n.blank(),
		Expect: uint32(n.opts.BootstrapExpect), View: n.formation.get(), Leader: n.hint(),
	}
	for _, server := range n.servers() {
		node, incarnation := splitServerID(server.ID)
		resp.Members = append(resp.Members, &peerpb.Member{
			Id: node, Incarnation: incarnation, Address: string(server.Address), Voter: server.Suffrage == raft.Voter,
		})
	}
	return resp, nil
}
