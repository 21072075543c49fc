package fsm

import (
	"bufio"
	"encoding/binary"
	"hash/crc32"
	"io"

	"github.com/klauspost/compress/zstd"

	"github.com/rollcall-io/rollcall/internal/wire"
	"github.com/rollcall-io/rollcall/registry"
)

// The frame of a snapshot file: the magic, the format version, then frames of
//
//	type (1 byte), stored length (4), length (4), content, CRC-32C (4) of all before
//
// with numbers big-endian: one header, any number of blocks, whose content is
// zstd-compressed records, and one trailer, with nothing behind it.
const (
	snapshotMagic   = "ROLLCALL"
	snapshotVersion = 1

	frameHeader  = 'H'
	frameBlock   = 'B'
	frameTrailer = 'T'

	// blockSize is the length at which a block is closed; a single record may be longer.
	blockSize = 64 << 10
	// maxFrame bounds both lengths of a frame: the longest record, a service with all the
	// clusters and settings that the limits allow, fits.
	maxFrame = 48 << 20
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// snapshotWriter writes records in blocks. The first error stays in err, and what
// follows it is ignored.
type snapshotWriter struct {
	to      *bufio.Writer
	zip     *zstd.Encoder
	block   []byte
	stored  []byte
	buf     []byte
	records uint64
	err     error
}

func newSnapshotWriter(to io.Writer, h wire.SnapshotHeader) (*snapshotWriter, error) {
	zip, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1))
	if err != nil {
		return nil, err
	}
	w := &snapshotWriter{to: bufio.NewWriterSize(to, 1<<20), zip: zip}
	_, w.err = w.to.WriteString(snapshotMagic)
	w.write(binary.BigEndian.AppendUint32(nil, snapshotVersion))
	content := wire.AppendSnapshotHeader(nil, h)
	w.frame(frameHeader, content, len(content))
	return w, w.err
}

// scratch is an empty buffer for the next record.
func (w *snapshotWriter) scratch() []byte { return w.buf[:0] }

// record adds one record and keeps its memory for the next scratch.
func (w *snapshotWriter) record(r []byte) {
	w.buf = r
	w.block = wire.AppendRecord(w.block, r)
	w.records++
	if len(w.block) >= blockSize {
		w.closeBlock()
	}
}

func (w *snapshotWriter) closeBlock() {
	if len(w.block) == 0 {
		return
	}
	w.stored = w.zip.EncodeAll(w.block, w.stored[:0])
	w.frame(frameBlock, w.stored, len(w.block))
	w.block = w.block[:0]
}

// finish writes the trailer and whatever is still in memory.
func (w *snapshotWriter) finish(d registry.Digest) error {
	w.closeBlock()
	content := wire.AppendSnapshotTrailer(nil, wire.SnapshotTrailer{Records: w.records, Digest: d})
	w.frame(frameTrailer, content, len(content))
	if w.err == nil {
		w.err = w.to.Flush()
	}
	return w.err
}

func (w *snapshotWriter) frame(kind byte, content []byte, length int) {
	head := make([]byte, 0, 16)
	head = append(head, kind)
	head = binary.BigEndian.AppendUint32(head, uint32(len(content)))
	head = binary.BigEndian.AppendUint32(head, uint32(length))
	sum := crc32.Update(crc32.Update(0, castagnoli, head), castagnoli, content)
	w.write(head)
	w.write(content)
	w.write(binary.BigEndian.AppendUint32(head[:0], sum))
}

func (w *snapshotWriter) write(b []byte) {
	if w.err == nil {
		_, w.err = w.to.Write(b)
	}
}
