package store

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"github.com/hashicorp/raft"
)

const (
	// checksumTag says what the bytes behind it are: the CRC-32C, big-endian.
	checksumTag = 1
	checksumLen = 5
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// checksum covers what an entry says. Its time of append is left out: it decides nothing.
func checksum(e *raft.Log) uint32 {
	var head [17]byte
	binary.BigEndian.PutUint64(head[:], e.Index)
	binary.BigEndian.PutUint64(head[8:], e.Term)
	head[16] = byte(e.Type)
	return crc32.Update(crc32.Checksum(head[:], castagnoli), castagnoli, e.Data)
}

// stamp gives every entry its checksum, in Extensions, which Raft stores and sends along
// and reads nothing in. It is set on the entries given, which go on from here to the
// cache, and from there to the followers.
//
// A follower keeps the checksum that the leader sent and compares it first: it was made
// before the entry left the leader's memory, and a checksum made anew here would bless
// whatever happened on the way. An entry without one, of a leader of an older version, or
// with one of another form, of a newer, gets one of its own: from here on it is guarded on
// this disk all the same.
func stamp(entries []*raft.Log) error {
	var room []byte
	for i, e := range entries {
		sum := checksum(e)
		if isChecksum(e.Extensions) {
			if binary.BigEndian.Uint32(e.Extensions[1:]) != sum {
				return fmt.Errorf("log entry %d does not match the checksum it came with", e.Index)
			}
			continue
		}
		if room == nil {
			room = make([]byte, 0, checksumLen*(len(entries)-i))
		}
		at := len(room)
		room = appendChecksum(room, sum)
		e.Extensions = room[at:len(room):len(room)]
	}
	return nil
}

func appendChecksum(to []byte, sum uint32) []byte {
	return binary.BigEndian.AppendUint32(append(to, checksumTag), sum)
}

func isChecksum(b []byte) bool { return len(b) == checksumLen && b[0] == checksumTag }

// verify compares an entry that was read at an index with its checksum. Versions before
// this one stored none: such an entry is taken as it is. It returns what is wrong, or
// nothing.
func verify(index uint64, e *raft.Log) string {
	switch {
	case e.Index != index:
		return fmt.Sprintf("calls itself entry %d", e.Index)
	case len(e.Extensions) == 0:
		return ""
	case !isChecksum(e.Extensions):
		return fmt.Sprintf("has a checksum of an unknown form, %x", e.Extensions)
	case binary.BigEndian.Uint32(e.Extensions[1:]) != checksum(e):
		return fmt.Sprintf("does not match its checksum %x", e.Extensions[1:])
	}
	return ""
}

// seal puts a checksum behind a value of the stable store.
func seal(value []byte) []byte {
	sealed := append(make([]byte, 0, len(value)+checksumLen), value...)
	return appendChecksum(sealed, crc32.Checksum(value, castagnoli))
}

// unseal takes the checksum away again and tells whether it matches. Values of versions
// before this one have none: numbers of eight bytes, and addresses, in which there is no
// control character.
func unseal(sealed []byte) (value []byte, matches bool) {
	at := len(sealed) - checksumLen
	if at < 0 || sealed[at] != checksumTag {
		control := func(r rune) bool { return r < ' ' }
		return sealed, len(sealed) == 8 || !bytes.ContainsFunc(sealed, control)
	}
	value = sealed[:at]
	return value, binary.BigEndian.Uint32(sealed[at+1:]) == crc32.Checksum(value, castagnoli)
}
