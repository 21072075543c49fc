package wire

import (
	"math"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/rollcall-io/rollcall/registry"
)

func decodeSwitchSet(d *decoder) registry.Command {
	return registry.SwitchSet{Entry: d.str(1), Value: d.str(2)}
}

func (e *encoder) namespace(n registry.Namespace) {
	e.str(1, n.ID)
	e.str(2, n.Name)
	e.str(3, n.Description)
}

func (d *decoder) namespace() registry.Namespace {
	return registry.Namespace{ID: d.str(1), Name: d.str(2), Description: d.str(3)}
}

func decodeNamespaceCreate(d *decoder) registry.Command {
	return registry.NamespaceCreate{Namespace: d.namespace()}
}

func decodeNamespaceUpdate(d *decoder) registry.Command {
	return registry.NamespaceUpdate{Namespace: d.namespace()}
}

func decodeNamespaceDelete(d *decoder) registry.Command {
	return registry.NamespaceDelete{ID: d.str(1)}
}

func decodeClusterInit(d *decoder) registry.Command {
	return registry.ClusterInit{ClusterID: d.str(1)}
}

func decodeTermStart(d *decoder) registry.Command {
	return registry.TermStart{Term: d.uint64(1), Node: d.str(2), Level: d.uint32(3)}
}

func decodeDigestCheck(d *decoder) registry.Command {
	return registry.DigestCheck{At: d.uint64(1), Digest: d.bytes16(2)}
}

func decodeFeatureLevel(d *decoder) registry.Command {
	return registry.FeatureLevel{Level: d.uint32(1)}
}

func decodeNoOp(*decoder) registry.Command { return registry.NoOp{} }

// str16 writes a digest as a bytes field of exactly 16, zeros included.
func (e *encoder) str16(num protowire.Number, v registry.Digest) {
	e.tag(num, protowire.BytesType)
	e.b = protowire.AppendBytes(e.b, v[:])
}

func (d *decoder) bytes16(num protowire.Number) (v registry.Digest) {
	if !d.has(num, protowire.BytesType) {
		d.fail("digest", uint64(num), "is missing")
		return v
	}
	n := d.length(num)
	if n != len(v) {
		d.fail("digest", uint64(num), "does not have 16 bytes")
		return v
	}
	copy(v[:], d.s[d.pos:d.pos+n])
	d.pos += n
	return v
}

// optionalDouble writes a float that is given, +0 included.
func (e *encoder) optionalDouble(num protowire.Number, v float64) {
	e.tag(num, protowire.Fixed64Type)
	e.b = protowire.AppendFixed64(e.b, math.Float64bits(v))
}
