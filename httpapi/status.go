package httpapi

import (
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/rollcall-io/rollcall/registry"
)

var statusRoutes = []route{{http.MethodGet, "/api/v1/status", figures, (*Server).status}}

// statusAnswer is a node's status on the wire.
type statusAnswer struct {
	ID        string         `json:"id"`
	ClusterID string         `json:"clusterId"`
	Version   string         `json:"version"`
	Ready     bool           `json:"ready"`
	NotReady  string         `json:"notReady,omitempty"`
	State     string         `json:"state"`
	Leader    string         `json:"leader"`
	Term      uint64         `json:"term"`
	Applied   uint64         `json:"applied"`
	Snapshot  uint64         `json:"snapshot"`
	LagMs     int64          `json:"lagMs"`
	FreeDisk  uint64         `json:"freeDiskBytes"`
	Diverged  bool           `json:"diverged"`
	Services  int            `json:"services"`
	Instances int            `json:"instances"`
	Members   []memberAnswer `json:"members"`
	Leases    leaseAnswer    `json:"leases"`
}

type memberAnswer struct {
	ID          string `json:"id"`
	Address     string `json:"address"`
	PeerAddress string `json:"peerAddress"`
	State       string `json:"state"`
	Leader      bool   `json:"leader"`
	Voter       bool   `json:"voter"`
}

type leaseAnswer struct {
	Leading       bool  `json:"leading"`
	Total         int   `json:"total"`
	Unhealthy     int   `json:"unhealthy"`
	Silent        int   `json:"silent"`
	Storm         bool  `json:"storm"`
	Held          int   `json:"held"`
	CompensatedMs int64 `json:"compensatedMs"`
	Kept          int   `json:"kept"`
}

// status is GET /api/v1/status: this node as it sees itself and the others. It is
// answered in every state of the node, always with 200: whether all is well is for the
// caller to judge.
func (s *Server) status(r *request) error {
	st := s.opts.Status()
	a := statusAnswer{
		ID: st.ID, ClusterID: st.ClusterID, Version: st.Version, Ready: st.NotReady == "", NotReady: st.NotReady,
		State: st.State, Leader: st.Leader, Term: st.Term, Applied: st.Applied, Snapshot: st.Snapshot,
		LagMs: st.LagMs, FreeDisk: st.FreeDisk, Diverged: st.Diverged, Services: st.Services, Instances: st.Instances,
		Members: make([]memberAnswer, 0, len(st.Members)), Leases: leaseAnswer(st.Leases),
	}
	for _, m := range st.Members {
		a.Members = append(a.Members, memberOf(m))
	}
	body, err := json.Marshal(a)
	if err != nil {
		return fmt.Errorf("encode status: %w", err)
	}
	return r.json(append(r.buffer(), body...))
}

func memberOf(m registry.Member) memberAnswer {
	return memberAnswer{ID: m.ID, Address: m.Address, PeerAddress: m.PeerAddress, State: m.State, Leader: m.Leader, Voter: m.Voter}
}
