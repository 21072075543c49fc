package wire

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/rollcall-io/rollcall/registry"
)

// EntryVersion is the version of a log entry's frame that this build writes and the
// newest that it reads.
const EntryVersion = 1

// Level is the highest feature level that this build knows. Kinds, versions and fields
// of a higher level may stand in the log only once every member knows that level.
const Level = 1

// PackEntry makes one log entry out of encoded commands, whose bytes it copies as they
// are. node and term are the proposer's, timeMs its wall clock in milliseconds.
func PackEntry(node string, term uint64, timeMs int64, commands [][]byte) []byte {
	size := 64 + len(node)
	for _, c := range commands {
		size += 6 + len(c)
	}
	e := encoder{b: make([]byte, 0, size)}
	e.uint(1, EntryVersion)
	e.str(2, node)
	e.uint(3, term)
	e.int(4, timeMs)
	for _, c := range commands {
		e.tag(5, protowire.BytesType)
		e.b = protowire.AppendBytes(e.b, c)
	}
	return e.b
}

// DecodeEntry reads a log entry. Texts of its commands are parts of one copy of b:
// whoever keeps one for long copies it. The error is an *Error that names what this
// build does not know.
func DecodeEntry(b []byte) (registry.Entry, error) {
	d := newDecoder(string(b))
	if version := d.uint64(1); d.err == nil && version != EntryVersion {
		d.fail("Entry", 1, fmt.Sprintf("version %d is unknown, the newest known is %d", version, EntryVersion))
	}
	entry := registry.Entry{Node: d.str(2), Term: d.uint64(3), Time: d.int(4)}
	if n := d.count(5); n > 0 {
		entry.Commands = make([]registry.Command, 0, n)
		for range n {
			outer, _ := d.begin(5)
			entry.Commands = append(entry.Commands, d.command())
			d.finish("Command", outer)
		}
	}
	d.finish("Entry", d.end)
	if d.err != nil {
		return registry.Entry{}, d.err
	}
	return entry, nil
}
