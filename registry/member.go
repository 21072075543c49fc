package registry

// States of a Member, spelled as Nacos spells them in its server lists.
const (
	MemberUp         = "UP"
	MemberSuspicious = "SUSPICIOUS"
	MemberDown       = "DOWN"
	MemberStarting   = "STARTING"
)

// Member is one node of the cluster as the node that was asked sees it.
type Member struct {
	// ID is the node id, unique in the cluster.
	ID string
	// Address is where the member serves HTTP, `host:port`; empty while unknown.
	Address string
	// PeerAddress is where other members reach it, `host:port`.
	PeerAddress string
	// State is one of the Member constants: what the asked node last heard of it.
	State string
	// Leader tells whether it leads, Voter whether it counts for a majority.
	Leader bool
	Voter  bool
}
