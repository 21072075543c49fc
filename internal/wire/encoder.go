package wire

import (
	"math"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/rollcall-io/rollcall/registry"
)

// encoder appends fields in canonical form. Callers name fields in ascending order.
// The first value without an encoding stays in err; what follows is ignored.
type encoder struct {
	b   []byte
	err error
}

func (e *encoder) tag(num protowire.Number, typ protowire.Type) {
	e.b = protowire.AppendTag(e.b, num, typ)
}

// uint writes a number, and nothing for 0.
func (e *encoder) uint(num protowire.Number, v uint64) {
	if v == 0 {
		return
	}
	e.tag(num, protowire.VarintType)
	e.b = protowire.AppendVarint(e.b, v)
}

// int writes an int64 as protobuf's int64 does, and nothing for 0.
func (e *encoder) int(num protowire.Number, v int64) { e.uint(num, uint64(v)) }

// bool writes true, and nothing for false.
func (e *encoder) bool(num protowire.Number, v bool) {
	if v {
		e.uint(num, 1)
	}
}

// double writes a float, and nothing for +0. The bits are kept, NaN's too.
func (e *encoder) double(num protowire.Number, v float64) {
	if math.Float64bits(v) == 0 {
		return
	}
	e.tag(num, protowire.Fixed64Type)
	e.b = protowire.AppendFixed64(e.b, math.Float64bits(v))
}

// str writes a text, and nothing for an empty one.
func (e *encoder) str(num protowire.Number, s string) {
	if s == "" {
		return
	}
	if !utf8.ValidString(s) && e.err == nil {
		e.err = unencodable("text", s, "is not UTF-8")
	}
	e.tag(num, protowire.BytesType)
	e.b = protowire.AppendString(e.b, s)
}

// begin opens a message field and returns the mark that end needs. One byte is kept
// for the length: most messages here are shorter than 128 bytes.
func (e *encoder) begin(num protowire.Number) int {
	e.tag(num, protowire.BytesType)
	e.b = append(e.b, 0)
	return len(e.b)
}

// end closes the message opened at mark and moves its bytes when the length needs
// more than the byte that begin left.
func (e *encoder) end(mark int) {
	size := len(e.b) - mark
	if more := protowire.SizeVarint(uint64(size)) - 1; more > 0 {
		e.b = append(e.b, "\x00\x00\x00\x00\x00\x00\x00\x00\x00"[:more]...)
		copy(e.b[mark+more:], e.b[mark:mark+size])
	}
	protowire.AppendVarint(e.b[:mark-1], uint64(size))
}

func (e *encoder) serviceKey(k registry.ServiceKey) {
	e.str(1, k.Namespace)
	e.str(2, k.Grouped)
}

func (e *encoder) instanceKey(k registry.InstanceKey) {
	e.serviceKey(k.Service)
	e.str(3, k.Cluster)
	e.str(4, k.IP)
	e.uint(5, uint64(k.Port))
}

// metadata writes each pair as a message {1 key, 2 value}.
func (e *encoder) metadata(num protowire.Number, m registry.Metadata) {
	for i, p := range m {
		if i > 0 && m[i-1].Key >= p.Key && e.err == nil {
			e.err = unencodable("metadata", p.Key, "is not in ascending order of keys")
		}
		mark := e.begin(num)
		e.str(1, p.Key)
		e.str(2, p.Value)
		e.end(mark)
	}
}

// spec writes the fields 1 to 9 that describe an instance.
func (e *encoder) spec(s *registry.Spec) {
	e.str(1, s.Cluster)
	e.str(2, s.IP)
	e.uint(3, uint64(s.Port))
	e.bool(4, s.Ephemeral)
	e.bool(5, s.Enabled)
	e.bool(6, s.Healthy)
	e.double(7, s.Weight)
	e.str(8, s.App)
	e.metadata(9, s.Metadata)
}
