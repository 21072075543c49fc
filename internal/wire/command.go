package wire

import (
	"fmt"
	"strconv"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/rollcall-io/rollcall/registry"
)

// MaxCommand bounds an encoded command, in bytes.
const MaxCommand = 1 << 20

// Kind is a command's kind: the number of its field in the Command message. Kinds are
// for good.
type Kind uint8

// The kinds.
const (
	KindRegister         Kind = 4
	KindDeregister       Kind = 5
	KindUpdate           Kind = 6
	KindPatch            Kind = 7
	KindMetadataBatch    Kind = 8
	KindHealthBatch      Kind = 9
	KindProbeBatch       Kind = 10
	KindEvictBatch       Kind = 11
	KindServiceCreate    Kind = 12
	KindServiceUpdate    Kind = 13
	KindServiceDelete    Kind = 14
	KindClusterUpdate    Kind = 15
	KindSwitchSet        Kind = 16
	KindNamespaceCreate  Kind = 17
	KindNamespaceUpdate  Kind = 18
	KindNamespaceDelete  Kind = 19
	KindClusterInit      Kind = 20
	KindTermStart        Kind = 21
	KindDigestCheck      Kind = 22
	KindFeatureLevel     Kind = 23
	KindNoOp             Kind = 24
	KindAuthInit         Kind = 25
	KindUserCreate       Kind = 26
	KindUserUpdate       Kind = 27
	KindUserDelete       Kind = 28
	KindRoleAdd          Kind = 29
	KindRoleRemove       Kind = 30
	KindPermissionAdd    Kind = 31
	KindPermissionRemove Kind = 32

	// KindEnd is above all kinds.
	KindEnd Kind = 33
)

// kinds is the table of what this build knows: by kind, its name, the newest version
// of its body and the function that reads the body.
var kinds = [KindEnd]struct {
	name   string
	newest uint64
	decode func(*decoder) registry.Command
}{
	KindRegister:         {"register", 1, decodeRegister},
	KindDeregister:       {"deregister", 1, decodeDeregister},
	KindUpdate:           {"update", 1, decodeUpdate},
	KindPatch:            {"patch", 1, decodePatch},
	KindMetadataBatch:    {"metadata_batch", 1, decodeMetadataBatch},
	KindHealthBatch:      {"health_batch", 1, decodeHealthBatch},
	KindProbeBatch:       {"probe_batch", 1, decodeProbeBatch},
	KindEvictBatch:       {"evict_batch", 1, decodeEvictBatch},
	KindServiceCreate:    {"service_create", 1, decodeServiceCreate},
	KindServiceUpdate:    {"service_update", 1, decodeServiceUpdate},
	KindServiceDelete:    {"service_delete", 1, decodeServiceDelete},
	KindClusterUpdate:    {"cluster_update", 1, decodeClusterUpdate},
	KindSwitchSet:        {"switch_set", 1, decodeSwitchSet},
	KindNamespaceCreate:  {"namespace_create", 1, decodeNamespaceCreate},
	KindNamespaceUpdate:  {"namespace_update", 1, decodeNamespaceUpdate},
	KindNamespaceDelete:  {"namespace_delete", 1, decodeNamespaceDelete},
	KindClusterInit:      {"cluster_init", 1, decodeClusterInit},
	KindTermStart:        {"term_start", 1, decodeTermStart},
	KindDigestCheck:      {"digest_check", 1, decodeDigestCheck},
	KindFeatureLevel:     {"feature_level", 1, decodeFeatureLevel},
	KindNoOp:             {"no_op", 1, decodeNoOp},
	KindAuthInit:         {"auth_init", 1, decodeAuthInit},
	KindUserCreate:       {"user_create", 1, decodeUserCreate},
	KindUserUpdate:       {"user_update", 1, decodeUserUpdate},
	KindUserDelete:       {"user_delete", 1, decodeUserDelete},
	KindRoleAdd:          {"role_add", 1, decodeRoleAdd},
	KindRoleRemove:       {"role_remove", 1, decodeRoleRemove},
	KindPermissionAdd:    {"permission_add", 1, decodePermissionAdd},
	KindPermissionRemove: {"permission_remove", 1, decodePermissionRemove},
}

// String is the kind's name as metrics and errors show it.
func (k Kind) String() string {
	if k < KindEnd && kinds[k].name != "" {
		return kinds[k].name
	}
	return "kind " + strconv.Itoa(int(k))
}

// EncodeCommand is a command as a log entry holds it. The error, an ErrInvalid, says
// that it holds something that has no encoding: a text that is no UTF-8, metadata out
// of order, more than MaxCommand bytes.
func EncodeCommand(c registry.Command) ([]byte, error) {
	kind := KindOf(c)
	if kind == 0 {
		return nil, fmt.Errorf("encode command: %T is not a command", c)
	}
	e := encoder{b: make([]byte, 0, 256)}
	e.uint(1, 1)
	mark := e.begin(protowire.Number(kind))
	e.command(c)
	e.end(mark)
	if e.err != nil {
		return nil, e.err
	}
	if len(e.b) > MaxCommand {
		return nil, unencodable("command", strconv.Itoa(len(e.b))+" bytes",
			"the limit is "+strconv.Itoa(MaxCommand))
	}
	return e.b, nil
}

// command writes the body of a command that is about a service; see clusterWide.
func (e *encoder) command(c registry.Command) {
	switch c := c.(type) {
	case registry.Register:
		e.register(&c)
	case registry.Deregister:
		e.deregister(&c)
	case registry.Update:
		e.update(&c)
	case registry.Patch:
		e.patch(&c)
	case registry.MetadataBatch:
		e.metadataBatch(&c)
	case registry.HealthBatch:
		e.healthBatch(&c)
	case registry.ProbeBatch:
		e.probeBatch(&c)
	case registry.EvictBatch:
		e.evictBatch(&c)
	case registry.ServiceCreate:
		e.serviceSettings(c.Key, &c.Spec)
	case registry.ServiceUpdate:
		e.serviceSettings(c.Key, &c.Spec)
	case registry.ServiceDelete:
		e.serviceKey(c.Key)
		e.uint(3, c.IfRevision)
	case registry.ClusterUpdate:
		e.clusterUpdate(&c)
	default:
		e.clusterWide(c)
	}
}

// clusterWide writes the body of a command that is about no service.
func (e *encoder) clusterWide(c registry.Command) {
	switch c := c.(type) {
	case registry.SwitchSet:
		e.str(1, c.Entry)
		e.str(2, c.Value)
	case registry.NamespaceCreate:
		e.namespace(c.Namespace)
	case registry.NamespaceUpdate:
		e.namespace(c.Namespace)
	case registry.NamespaceDelete:
		e.str(1, c.ID)
	case registry.ClusterInit:
		e.str(1, c.ClusterID)
	case registry.TermStart:
		e.uint(1, c.Term)
		e.str(2, c.Node)
		e.uint(3, uint64(c.Level))
	case registry.DigestCheck:
		e.uint(1, c.At)
		e.str16(2, c.Digest)
	case registry.FeatureLevel:
		e.uint(1, uint64(c.Level))
	case registry.NoOp:
	default:
		e.accounts(c)
	}
}

// KindOf is a command's kind, 0 for what is no command.
func KindOf(c registry.Command) Kind {
	switch c.(type) {
	case registry.Register:
		return KindRegister
	case registry.Deregister:
		return KindDeregister
	case registry.Update:
		return KindUpdate
	case registry.Patch:
		return KindPatch
	case registry.MetadataBatch:
		return KindMetadataBatch
	case registry.HealthBatch:
		return KindHealthBatch
	case registry.ProbeBatch:
		return KindProbeBatch
	case registry.EvictBatch:
		return KindEvictBatch
	case registry.ServiceCreate:
		return KindServiceCreate
	case registry.ServiceUpdate:
		return KindServiceUpdate
	case registry.ServiceDelete:
		return KindServiceDelete
	case registry.ClusterUpdate:
		return KindClusterUpdate
	case registry.SwitchSet:
		return KindSwitchSet
	case registry.NamespaceCreate:
		return KindNamespaceCreate
	case registry.NamespaceUpdate:
		return KindNamespaceUpdate
	case registry.NamespaceDelete:
		return KindNamespaceDelete
	case registry.ClusterInit:
		return KindClusterInit
	case registry.TermStart:
		return KindTermStart
	case registry.DigestCheck:
		return KindDigestCheck
	case registry.FeatureLevel:
		return KindFeatureLevel
	case registry.NoOp:
		return KindNoOp
	}
	return accountsKind(c)
}

// DecodeCommand is the inverse of EncodeCommand. Whatever EncodeCommand would not have
// written is an *Error.
func DecodeCommand(b []byte) (registry.Command, error) {
	d := newDecoder(string(b))
	c := d.command()
	if d.err != nil {
		return nil, d.err
	}
	return c, nil
}

// command reads the fields of a Command up to the decoder's end.
func (d *decoder) command() registry.Command {
	version := d.uint64(1)
	at := d.pos
	tag := d.varint()
	d.pos = at
	if d.err != nil {
		return nil
	}
	kind := tag >> 3
	if kind >= uint64(KindEnd) || kinds[kind].decode == nil {
		d.fail("Command", kind, "unknown kind of command")
		return nil
	}
	k := &kinds[kind]
	if version < 1 || version > k.newest {
		d.fail(k.name, 1, fmt.Sprintf("version %d is unknown, the newest known is %d", version, k.newest))
		return nil
	}
	outer, found := d.begin(protowire.Number(kind))
	if !found {
		d.fail(k.name, kind, "is not a message")
		return nil
	}
	c := k.decode(d)
	d.finish(k.name, outer)
	if d.err == nil && d.pos != d.end {
		d.fail("Command", 0, "more than one kind, or an unknown field")
	}
	return c
}
