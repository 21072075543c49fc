package wire

import (
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/rollcall-io/rollcall/registry"
)

// RecordKind tells what a Record holds: the number of its field in the Record message.
// Kinds are for good.
type RecordKind uint8

// The kinds of records, in the order in which a snapshot holds them, save that an
// instance follows its service.
const (
	RecordGlobals   RecordKind = 1
	RecordSwitches  RecordKind = 2
	RecordKnown     RecordKind = 3 // a known namespace id
	RecordNamespace RecordKind = 4
	RecordService   RecordKind = 5
	RecordInstance  RecordKind = 6
	RecordTombstone RecordKind = 7
	// The accounts.
	RecordUser       RecordKind = 8
	RecordBinding    RecordKind = 9
	RecordPermission RecordKind = 10
	RecordAuthKey    RecordKind = 11
)

// Globals are the single values of the replicated state.
type Globals struct {
	ClusterID string
	Level     uint32
	// TermStart is the last term whose first command was applied.
	TermStart uint64
	// LastTime is the highest entry time so far, in milliseconds.
	LastTime int64
	// DeletedStamp is the highest change stamp of a deleted service.
	DeletedStamp int64
}

// Record is one record of the state: the fields that belong to Kind are set.
type Record struct {
	Kind      RecordKind
	Globals   Globals
	Switches  []registry.Pair
	Known     string
	Namespace registry.Namespace
	// Service holds the settings of a service, without instances.
	Service *registry.Service
	// Key and Instance are an instance and the service that it is in.
	Key      registry.ServiceKey
	Instance *registry.Instance
	// Tombstone is the key of a deregistered instance, Until when its mark ends.
	Tombstone registry.InstanceKey
	Until     int64
	// User, Binding, Permission and AuthKey are the parts of the accounts.
	User       registry.User
	Binding    registry.RoleBinding
	Permission registry.Permission
	AuthKey    string
}

// AppendGlobals appends a globals record to b.
func AppendGlobals(b []byte, g Globals) []byte {
	e := encoder{b: b}
	mark := e.begin(protowire.Number(RecordGlobals))
	e.str(1, g.ClusterID)
	e.uint(2, uint64(g.Level))
	e.uint(3, g.TermStart)
	e.int(4, g.LastTime)
	e.int(5, g.DeletedStamp)
	e.end(mark)
	return e.b
}

// AppendSwitches appends the record of all switches, sorted by name.
func AppendSwitches(b []byte, s registry.Switches) []byte {
	e := encoder{b: b}
	mark := e.begin(protowire.Number(RecordSwitches))
	e.metadata(1, registry.Metadata(s.Pairs()))
	e.end(mark)
	return e.b
}

// AppendKnown appends the record of a namespace id in which services were registered.
func AppendKnown(b []byte, id string) []byte {
	e := encoder{b: b}
	mark := e.begin(protowire.Number(RecordKnown))
	e.str(1, id)
	e.end(mark)
	return e.b
}

// AppendNamespace appends a namespace's record.
func AppendNamespace(b []byte, n registry.Namespace) []byte {
	e := encoder{b: b}
	mark := e.begin(protowire.Number(RecordNamespace))
	e.namespace(n)
	e.end(mark)
	return e.b
}

// AppendService appends the record of a service's settings.
func AppendService(b []byte, s *registry.Service) []byte {
	e := encoder{b: b}
	mark := e.begin(protowire.Number(RecordService))
	e.serviceKey(s.Key)
	e.serviceSpec(&s.ServiceSpec)
	e.bool(7, s.Manual)
	e.uint(8, s.Revision)
	e.int(9, s.Stamp)
	e.int(10, s.EmptySince)
	for i := range s.Clusters {
		e.cluster(11, &s.Clusters[i])
	}
	e.end(mark)
	return e.b
}

// AppendInstance appends the record of an instance with its lease. Timeouts are left
// out: they follow from the metadata.
func AppendInstance(b []byte, k registry.ServiceKey, in *registry.Instance) []byte {
	e := encoder{b: b}
	mark := e.begin(protowire.Number(RecordInstance))
	e.serviceKey(k)
	spec := e.begin(3)
	e.spec(&in.Spec)
	e.end(spec)
	e.uint(4, uint64(in.SnowflakeID))
	e.position(5, in.Generation)
	if in.Lease != 0 {
		lease := e.begin(7)
		e.uint(1, uint64(in.Lease))
		e.position(2, in.Grant)
		e.end(lease)
	}
	e.end(mark)
	return e.b
}

// AppendTombstone appends the record of a tombstone.
func AppendTombstone(b []byte, k registry.InstanceKey, until int64) []byte {
	e := encoder{b: b}
	mark := e.begin(protowire.Number(RecordTombstone))
	e.instanceKey(k)
	e.int(6, until)
	e.end(mark)
	return e.b
}

// AppendUser appends an account.
func AppendUser(b []byte, u registry.User) []byte {
	e := encoder{b: b}
	mark := e.begin(protowire.Number(RecordUser))
	e.user(u)
	e.end(mark)
	return e.b
}

// AppendBinding appends a role of a user.
func AppendBinding(b []byte, r registry.RoleBinding) []byte {
	e := encoder{b: b}
	mark := e.begin(protowire.Number(RecordBinding))
	e.binding(r)
	e.end(mark)
	return e.b
}

// AppendPermission appends a permission of a role.
func AppendPermission(b []byte, p registry.Permission) []byte {
	e := encoder{b: b}
	mark := e.begin(protowire.Number(RecordPermission))
	e.permission(p)
	e.end(mark)
	return e.b
}

// AppendAuthKey appends the key that signs tokens.
func AppendAuthKey(b []byte, key string) []byte {
	e := encoder{b: b}
	mark := e.begin(protowire.Number(RecordAuthKey))
	e.str(1, key)
	e.end(mark)
	return e.b
}

// DecodeRecord reads one record. Texts of the result are parts of s. The error is an
// *Error that names what this build does not know.
func DecodeRecord(s string) (Record, error) {
	d := newDecoder(s)
	at := d.pos
	kind := d.varint() >> 3
	d.pos = at
	r := Record{Kind: RecordKind(kind)}
	if kind < uint64(RecordGlobals) || kind > uint64(RecordAuthKey) {
		d.fail("Record", kind, "unknown kind of record")
		return Record{}, d.err
	}
	outer, found := d.begin(protowire.Number(kind))
	if !found {
		d.fail("Record", kind, "is not a message")
		return Record{}, d.err
	}
	d.record(&r)
	d.finish("Record", outer)
	if d.err == nil && d.pos != d.end {
		d.fail("Record", 0, "more than one kind, or an unknown field")
	}
	if d.err != nil {
		return Record{}, d.err
	}
	return r, nil
}

func (d *decoder) record(r *Record) {
	switch r.Kind {
	case RecordGlobals:
		r.Globals = Globals{ClusterID: d.str(1), Level: d.uint32(2), TermStart: d.uint64(3)}
		r.Globals.LastTime, r.Globals.DeletedStamp = d.int(4), d.int(5)
	case RecordSwitches:
		r.Switches = d.metadata(1)
	case RecordKnown:
		r.Known = d.str(1)
	case RecordNamespace:
		r.Namespace = d.namespace()
	case RecordService:
		r.Service = d.service()
	case RecordInstance:
		d.instance(r)
	case RecordTombstone:
		r.Tombstone = d.instanceKey()
		r.Until = d.int(6)
	case RecordUser:
		r.User = d.user()
	case RecordBinding:
		r.Binding = d.binding()
	case RecordPermission:
		r.Permission = d.permission()
	case RecordAuthKey:
		r.AuthKey = d.str(1)
	}
}

func (d *decoder) service() *registry.Service {
	s := &registry.Service{Key: d.serviceKey(), ServiceSpec: d.serviceSpec(), Manual: d.bool(7)}
	s.Revision = d.uint64(8)
	s.Stamp = d.int(9)
	s.EmptySince = d.int(10)
	if n := d.count(11); n > 0 {
		s.Clusters = make([]registry.Cluster, 0, n)
		for range n {
			outer, _ := d.begin(11)
			c := d.cluster()
			d.finish("Cluster", outer)
			if len(s.Clusters) > 0 && s.Clusters[len(s.Clusters)-1].Name >= c.Name {
				d.fail("Service", 11, "clusters are not in ascending order")
			}
			s.Clusters = append(s.Clusters, c)
		}
	}
	return s
}

func (d *decoder) instance(r *Record) {
	r.Key = d.serviceKey()
	in := &registry.Instance{}
	d.nestedSpec(&in.Spec)
	in.SnowflakeID = d.uint32(4)
	in.Generation = d.position(5)
	if outer, found := d.begin(7); found {
		in.Lease = d.uint32(1)
		in.Grant = d.position(2)
		d.finish("Lease", outer)
		if in.Lease == 0 {
			d.fail("Lease", 1, "has no number")
		}
	}
	r.Instance = in
}
