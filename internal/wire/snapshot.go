package wire

import (
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/rollcall-io/rollcall/registry"
)

// SnapshotHeader is the first message of a snapshot file.
type SnapshotHeader struct {
	ClusterID string
	// Index and Term are those of the last entry that the state holds.
	Index uint64
	Term  uint64
	// Level is the feature level of the state: a build that knows less must not read on.
	Level uint32
	// Time is the highest entry time, in milliseconds.
	Time int64
}

// SnapshotTrailer is the last message: what must have been read before it.
type SnapshotTrailer struct {
	Records uint64
	Digest  registry.Digest
}

// AppendSnapshotHeader appends a header message to b.
func AppendSnapshotHeader(b []byte, h SnapshotHeader) []byte {
	e := encoder{b: b}
	e.str(1, h.ClusterID)
	e.uint(2, h.Index)
	e.uint(3, h.Term)
	e.uint(4, uint64(h.Level))
	e.int(5, h.Time)
	return e.b
}

// DecodeSnapshotHeader is the inverse of AppendSnapshotHeader.
func DecodeSnapshotHeader(b []byte) (SnapshotHeader, error) {
	d := newDecoder(string(b))
	h := SnapshotHeader{ClusterID: d.str(1), Index: d.uint64(2), Term: d.uint64(3), Level: d.uint32(4), Time: d.int(5)}
	d.finish("SnapshotHeader", d.end)
	if d.err != nil {
		return SnapshotHeader{}, d.err
	}
	return h, nil
}

// AppendSnapshotTrailer appends a trailer message to b.
func AppendSnapshotTrailer(b []byte, t SnapshotTrailer) []byte {
	e := encoder{b: b}
	e.uint(1, t.Records)
	e.str16(2, t.Digest)
	return e.b
}

// DecodeSnapshotTrailer is the inverse of AppendSnapshotTrailer.
func DecodeSnapshotTrailer(b []byte) (SnapshotTrailer, error) {
	d := newDecoder(string(b))
	t := SnapshotTrailer{Records: d.uint64(1), Digest: d.bytes16(2)}
	d.finish("SnapshotTrailer", d.end)
	if d.err != nil {
		return SnapshotTrailer{}, d.err
	}
	return t, nil
}

// NextRecord cuts the first length-prefixed record off a block's content.
func NextRecord(block string) (record, rest string, err error) {
	d := newDecoder(block)
	n := d.length(0)
	if d.err != nil {
		return "", "", d.err
	}
	return block[d.pos : d.pos+n], block[d.pos+n:], nil
}

// AppendRecord appends a record to a block's content, behind its length.
func AppendRecord(block, record []byte) []byte { return protowire.AppendBytes(block, record) }
