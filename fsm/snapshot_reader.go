package fsm

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/klauspost/compress/zstd"

	"github.com/rollcall-io/rollcall/internal/wire"
)

// snapshotReader reads the frames of a snapshot file. It allocates no more than the file
// holds, and for a block at most maxFrame.
type snapshotReader struct {
	from  *bufio.Reader
	unzip *zstd.Decoder
	body  bytes.Buffer
	block []byte
}

// newSnapshotReader reads up to the header and refuses what this build cannot read.
func newSnapshotReader(from io.Reader) (*snapshotReader, wire.SnapshotHeader, error) {
	var h wire.SnapshotHeader
	unzip, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxFrame))
	if err != nil {
		return nil, h, err
	}
	r := &snapshotReader{from: bufio.NewReaderSize(from, 1<<20), unzip: unzip}
	if h, err = r.header(); err != nil {
		r.close()
		return nil, h, err
	}
	return r, h, nil
}

func (r *snapshotReader) close() { r.unzip.Close() }

func (r *snapshotReader) header() (h wire.SnapshotHeader, err error) {
	start := make([]byte, len(snapshotMagic)+4)
	if _, err = io.ReadFull(r.from, start); err != nil {
		return h, fmt.Errorf("read first bytes: %w", cutOff(err))
	}
	if string(start[:len(snapshotMagic)]) != snapshotMagic {
		return h, fmt.Errorf("not a snapshot: it starts with %q", start)
	}
	if v := binary.BigEndian.Uint32(start[len(snapshotMagic):]); v != snapshotVersion {
		return h, fmt.Errorf("format version %d is unknown, the newest known is %d", v, snapshotVersion)
	}
	kind, content, err := r.frame()
	if err != nil {
		return h, fmt.Errorf("read header: %w", err)
	}
	if kind != frameHeader {
		return h, fmt.Errorf("read header: frame of type %q instead", kind)
	}
	if h, err = wire.DecodeSnapshotHeader(content); err != nil {
		return h, err
	}
	if h.Level > Level {
		return h, fmt.Errorf("feature level %d is unknown, the highest known is %d: a newer rollcall wrote this",
			h.Level, Level)
	}
	return h, nil
}

// frame reads one frame and checks its sum. The content is valid until the next call.
func (r *snapshotReader) frame() (kind byte, content []byte, err error) {
	head := make([]byte, 9)
	if _, err := io.ReadFull(r.from, head); err != nil {
		return 0, nil, cutOff(err)
	}
	stored, length := binary.BigEndian.Uint32(head[1:]), binary.BigEndian.Uint32(head[5:])
	if stored > maxFrame || length > maxFrame {
		return 0, nil, fmt.Errorf("frame of %d bytes, unpacked %d, the limit is %d", stored, length, maxFrame)
	}
	r.body.Reset()
	// Copied as it comes, so that a length alone allocates nothing.
	if _, err := io.CopyN(&r.body, r.from, int64(stored)+4); err != nil {
		return 0, nil, cutOff(err)
	}
	content, want := r.body.Bytes()[:stored], binary.BigEndian.Uint32(r.body.Bytes()[stored:])
	if got := crc32.Update(crc32.Update(0, castagnoli, head), castagnoli, content); got != want {
		return 0, nil, fmt.Errorf("frame of type %q has checksum %08x instead of %08x", head[0], got, want)
	}
	if head[0] != frameBlock {
		return head[0], content, nil
	}
	if r.block, err = r.unzip.DecodeAll(content, r.block[:0]); err != nil {
		return 0, nil, fmt.Errorf("unpack block: %w", err)
	}
	if len(r.block) != int(length) {
		return 0, nil, fmt.Errorf("block of %d bytes instead of %d", len(r.block), length)
	}
	return frameBlock, r.block, nil
}

// atEnd reports anything behind the trailer.
func (r *snapshotReader) atEnd() error {
	if _, err := r.from.ReadByte(); !errors.Is(err, io.EOF) {
		return errors.New("bytes follow the trailer")
	}
	return nil
}

func cutOff(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
