package wire

import (
	"math"
	"strconv"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/rollcall-io/rollcall/registry"
)

// decoder reads fields in canonical form from a string, of which all texts that it
// returns are parts: nothing is copied. A reading method takes the field when it comes
// next and returns the default otherwise; a field that nobody took is reported by
// finish as unknown or out of place. The first fault stays in err, and after it every
// method returns defaults.
type decoder struct {
	s   string
	pos int
	end int
	err *Error
}

func newDecoder(s string) decoder { return decoder{s: s, end: len(s)} }

func (d *decoder) fail(message string, field uint64, reason string) {
	if d.err == nil {
		d.err = &Error{Message: message, Field: field, Offset: d.pos, Reason: reason}
	}
	d.pos = d.end
}

// varint reads a number in its shortest form.
func (d *decoder) varint() uint64 {
	if d.pos < d.end && d.s[d.pos] < 0x80 {
		d.pos++
		return uint64(d.s[d.pos-1])
	}
	var v uint64
	for i, shift := d.pos, 0; i < d.end && shift < 70; i, shift = i+1, shift+7 {
		c := d.s[i]
		if shift == 63 && c > 1 {
			break
		}
		v |= uint64(c&0x7f) << shift
		if c < 0x80 {
			if c == 0 && shift > 0 {
				break
			}
			d.pos = i + 1
			return v
		}
	}
	d.fail("number", 0, "cut off, above 64 bits or not in its shortest form")
	return 0
}

// has takes the tag of a field when it comes next.
func (d *decoder) has(num protowire.Number, typ protowire.Type) bool {
	if d.pos >= d.end {
		return false
	}
	want := protowire.EncodeTag(num, typ)
	if want < 0x80 {
		if d.s[d.pos] != byte(want) {
			return false
		}
		d.pos++
		return true
	}
	at := d.pos
	if d.varint() == want {
		return true
	}
	if d.err == nil {
		d.pos = at
	}
	return false
}

// uint is a number of at most limit; an explicit 0 is not canonical.
func (d *decoder) uint(num protowire.Number, limit uint64) uint64 {
	if !d.has(num, protowire.VarintType) {
		return 0
	}
	v := d.varint()
	if d.err == nil && (v == 0 || v > limit) {
		d.fail("number", uint64(num), strconv.FormatUint(v, 10)+" is not in 1.."+strconv.FormatUint(limit, 10))
		return 0
	}
	return v
}

func (d *decoder) uint16(num protowire.Number) uint16 { return uint16(d.uint(num, math.MaxUint16)) }
func (d *decoder) uint32(num protowire.Number) uint32 { return uint32(d.uint(num, math.MaxUint32)) }
func (d *decoder) uint64(num protowire.Number) uint64 { return d.uint(num, math.MaxUint64) }
func (d *decoder) int(num protowire.Number) int64     { return int64(d.uint(num, math.MaxUint64)) }
func (d *decoder) bool(num protowire.Number) bool     { return d.uint(num, 1) == 1 }

func (d *decoder) fixed64(num protowire.Number) (v uint64, found bool) {
	if !d.has(num, protowire.Fixed64Type) {
		return 0, false
	}
	if d.end-d.pos < 8 {
		d.fail("float", uint64(num), "cut off")
		return 0, false
	}
	for i := 7; i >= 0; i-- {
		v = v<<8 | uint64(d.s[d.pos+i])
	}
	d.pos += 8
	return v, true
}

// double is a float; an explicit +0 is not canonical.
func (d *decoder) double(num protowire.Number) float64 {
	bits, found := d.fixed64(num)
	if found && bits == 0 {
		d.fail("float", uint64(num), "default value spelled out")
	}
	return math.Float64frombits(bits)
}

// length reads the length of a text or message and checks it against what is there.
func (d *decoder) length(num protowire.Number) int {
	n := d.varint()
	if n > uint64(d.end-d.pos) {
		d.fail("length", uint64(num), strconv.FormatUint(n, 10)+" bytes announced, "+strconv.Itoa(d.end-d.pos)+" there")
		return 0
	}
	return int(n)
}

// text is a part of the input after a tag that was taken.
func (d *decoder) text(num protowire.Number) string {
	n := d.length(num)
	s := d.s[d.pos : d.pos+n]
	d.pos += n
	if !utf8.ValidString(s) {
		d.fail("text", uint64(num), "is not UTF-8")
		return ""
	}
	return s
}

// str is a text; an explicit empty one is not canonical.
func (d *decoder) str(num protowire.Number) string {
	if !d.has(num, protowire.BytesType) {
		return ""
	}
	s := d.text(num)
	if s == "" {
		d.fail("text", uint64(num), "default value spelled out")
	}
	return s
}

// begin enters a message field when it comes next. finish needs the returned end.
func (d *decoder) begin(num protowire.Number) (outer int, found bool) {
	if !d.has(num, protowire.BytesType) {
		return 0, false
	}
	n := d.length(num)
	outer = d.end
	d.end = d.pos + n
	return outer, d.err == nil
}

// finish leaves a message: whatever of it was not taken is a fault.
func (d *decoder) finish(message string, outer int) {
	if d.err == nil && d.pos != d.end {
		at := d.pos
		field := d.varint() >> 3
		d.pos = at
		d.fail(message, field, "unknown field, or one that is repeated or out of place")
	}
	d.end = outer
}

// count is how many fields num of message type follow one another from here.
func (d *decoder) count(num protowire.Number) int {
	ahead, n := *d, 0
	for ahead.err == nil && ahead.has(num, protowire.BytesType) {
		ahead.pos += ahead.length(num)
		n++
	}
	return n
}

func (d *decoder) serviceKey() registry.ServiceKey {
	return registry.ServiceKey{Namespace: d.str(1), Grouped: d.str(2)}
}

func (d *decoder) instanceKey() registry.InstanceKey {
	return registry.InstanceKey{Service: d.serviceKey(), Cluster: d.str(3), IP: d.str(4), Port: d.uint16(5)}
}

func (d *decoder) metadata(num protowire.Number) registry.Metadata {
	n := d.count(num)
	if n == 0 {
		return nil
	}
	m := make(registry.Metadata, 0, n)
	for range n {
		outer, _ := d.begin(num)
		p := registry.Pair{Key: d.str(1), Value: d.str(2)}
		d.finish("Pair", outer)
		if len(m) > 0 && m[len(m)-1].Key >= p.Key {
			d.fail("Pair", uint64(num), "keys are not in ascending order")
		}
		m = append(m, p)
	}
	return m
}

func (d *decoder) spec(s *registry.Spec) {
	s.Cluster = d.str(1)
	s.IP = d.str(2)
	s.Port = d.uint16(3)
	s.Ephemeral = d.bool(4)
	s.Enabled = d.bool(5)
	s.Healthy = d.bool(6)
	s.Weight = d.double(7)
	s.App = d.str(8)
	s.Metadata = d.metadata(9)
}
