package registry

// Command is a change of the registry's state, as it stands in a log entry. The set
// of commands is closed: the types of this file and of command_auth.go. A command names single instances,
// never a whole list, and never a result worked out by a follower; what it means is
// decided in Apply against the state as it is then.
type Command interface{ command() }

// Register puts an instance, making service and cluster when missing.
//
// An instance that is there keeps its id and its lease number and is otherwise
// replaced whole, with a new generation and a new grant. If the key is registered as
// the other kind: ErrKindMismatch. FromBeat marks a registration made by a full beat:
// it is refused with ErrTombstoned while the key's tombstone stands, and changes nothing
// when the instance is there meanwhile; without it a tombstone is cleared.
type Register struct {
	Service  ServiceKey
	Spec     Spec
	FromBeat bool
}

// Kind of an instance, as a Deregister may demand it.
type Kind uint8

// The kinds. AnyKind takes whichever is there.
const (
	AnyKind        Kind = 0
	KindEphemeral  Kind = 1
	KindPersistent Kind = 2
)

// Deregister removes an instance and leaves a tombstone for ephemeral ones. Nothing
// there: success without change. Registered as another kind than Kind: ErrKindMismatch.
type Deregister struct {
	Key  InstanceKey
	Kind Kind
}

// Update replaces an instance that must be there (PUT by a Java client): the service,
// else ErrServiceNotFound, and an instance with the same ip, port and kind in any
// cluster, else ErrInstanceNotFound. Then it acts as a Register.
type Update struct {
	Service ServiceKey
	Spec    Spec
}

// Patch changes the given fields of an instance that must be there, else
// ErrServiceNotFound or ErrInstanceNotFound. Metadata is replaced whole, or with Merge
// its pairs are added to those that are there. The generation stays; an ephemeral
// instance's lease is granted anew.
type Patch struct {
	Key      InstanceKey
	Weight   *float64
	Enabled  *bool
	Healthy  *bool
	App      *string
	Metadata *Metadata
	Merge    bool
}

// MetadataBatch merges metadata into instances of one service, or deletes its keys
// from them. Targets lists them; with none, all of Kind are meant. What is not there, the
// service too, is skipped. Result.Touched lists what was found. If one of the results is
// invalid, nothing changes. A lease whose timeouts change is granted anew.
type MetadataBatch struct {
	Service  ServiceKey
	Delete   bool
	Kind     Kind
	Targets  []Target
	Metadata Metadata
}

// Target is an instance inside a service together with its kind.
type Target struct {
	Address
	Ephemeral bool
}

// HealthBatch flips the health of instances by lease. An item whose lease is gone or
// was granted again is skipped; so is the whole batch when Term is not the entry's term.
type HealthBatch struct {
	Term  uint64
	Items []HealthItem
}

// HealthItem is one flip.
type HealthItem struct {
	Lease   uint32
	Grant   Position
	Healthy bool
}

// ProbeBatch sets the health of persistent instances. An item whose instance is gone,
// is ephemeral or has another generation is skipped; so is the whole batch when Term
// is not the entry's term.
type ProbeBatch struct {
	Term  uint64
	Items []ProbeItem
}

// ProbeItem is one probe's verdict.
type ProbeItem struct {
	Key        InstanceKey
	Generation Position
	Healthy    bool
}

// EvictBatch removes instances whose lease ran out, with the guards of HealthBatch.
// It leaves no tombstones.
type EvictBatch struct {
	Term  uint64
	Items []LeaseRef
}

// LeaseRef names one grant of a lease.
type LeaseRef struct {
	Number uint32
	Grant  Position
}

// ServiceCreate makes a service by hand, which then stays when empty. There already:
// ErrServiceExists.
type ServiceCreate struct {
	Key  ServiceKey
	Spec ServiceSpec
}

// ServiceUpdate replaces a service's settings and makes it one that stays when empty, or
// its clean-up would lose what an operator set. Not there: ErrServiceNotFound.
type ServiceUpdate struct {
	Key  ServiceKey
	Spec ServiceSpec
}

// ServiceDelete removes a service without instances. Not there: ErrServiceNotFound;
// with instances: ErrServiceNotEmpty. A non-zero IfRevision is the clean-up of empty
// services: it acts only if the revision still is that, the service is empty and was
// not made by hand, else ErrGuardFailed.
type ServiceDelete struct {
	Key        ServiceKey
	IfRevision uint64
}

// ClusterUpdate sets a cluster's settings, making the cluster when missing, and makes the
// service one that stays when empty. No such service: ErrServiceNotFound.
type ClusterUpdate struct {
	Key     ServiceKey
	Cluster Cluster
}

// SwitchSet sets one replicated switch; see Switches.With.
type SwitchSet struct {
	Entry string
	Value string
}

// Namespace is a namespace's record. Instances may be registered in namespaces that
// have none.
type Namespace struct {
	ID          string
	Name        string
	Description string
}

// NamespaceCreate makes a record. There already: ErrNamespaceExists.
type NamespaceCreate struct{ Namespace Namespace }

// NamespaceUpdate replaces a record. Not there: ErrNamespaceNotFound.
type NamespaceUpdate struct{ Namespace Namespace }

// NamespaceDelete removes a record and forgets the namespace. Not there:
// ErrNamespaceNotFound; with services: ErrNamespaceNotEmpty, its reason says how many.
type NamespaceDelete struct{ ID string }

// ClusterInit gives the cluster its id, once: the first command after bootstrap. If it
// has another id already: ErrGuardFailed.
type ClusterInit struct{ ClusterID string }

// TermStart is the first command of a leader's term.
type TermStart struct {
	Term  uint64
	Node  string
	Level uint32 // highest feature level that the node knows
}

// DigestCheck carries the leader's digest at an index. Every node compares it with its
// own at that index; a difference is an alarm and never changes state.
type DigestCheck struct {
	At     uint64
	Digest Digest
}

// FeatureLevel raises the level up to which command kinds and versions may be used.
// Levels never fall: a lower one is ErrGuardFailed.
type FeatureLevel struct{ Level uint32 }

// NoOp changes nothing and moves the index.
type NoOp struct{}

// Digest is a digest over the whole replicated state.
type Digest [16]byte

func (Register) command()        {}
func (Deregister) command()      {}
func (Update) command()          {}
func (Patch) command()           {}
func (MetadataBatch) command()   {}
func (HealthBatch) command()     {}
func (ProbeBatch) command()      {}
func (EvictBatch) command()      {}
func (ServiceCreate) command()   {}
func (ServiceUpdate) command()   {}
func (ServiceDelete) command()   {}
func (ClusterUpdate) command()   {}
func (SwitchSet) command()       {}
func (NamespaceCreate) command() {}
func (NamespaceUpdate) command() {}
func (NamespaceDelete) command() {}
func (ClusterInit) command()     {}
func (TermStart) command()       {}
func (DigestCheck) command()     {}
func (FeatureLevel) command()    {}
func (NoOp) command()            {}

// KeyOf is the instance that a command is about, and whether it is about exactly one.
func KeyOf(c Command) (InstanceKey, bool) {
	switch c := c.(type) {
	case Register:
		return c.Spec.Address.In(c.Service), true
	case Update:
		return c.Spec.Address.In(c.Service), true
	case Deregister:
		return c.Key, true
	case Patch:
		return c.Key, true
	}
	return InstanceKey{}, false
}

// Result is what Apply made of one command. It is the same on every node.
type Result struct {
	// Index is the Raft index of the command's entry. Of a re-registration answered
	// without an entry it is the applied index at which it was decided.
	Index uint64
	// Err is the typed refusal, nil on success. A refused command left state unchanged.
	Err *Error
	// Changed tells whether anything that a client can see changed.
	Changed bool
	// Skipped counts the items of a batch that a guard left out.
	Skipped int
	// Touched lists the instances that a MetadataBatch changed.
	Touched []Target
}

// Entry is the content of one log entry.
type Entry struct {
	// Node and Term are those of the proposer.
	Node string
	Term uint64
	// Time is the proposer's wall clock in milliseconds since 1970. Apply raises it to
	// the time of the entry before when it lies behind.
	Time     int64
	Commands []Command
}
