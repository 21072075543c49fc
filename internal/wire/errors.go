package wire

import (
	"fmt"

	"github.com/rollcall-io/rollcall/registry"
)

// Error says why bytes could not be decoded: the message that was being read, the
// protobuf field number at fault (0 when there is none), the byte offset in the input
// and the reason.
type Error struct {
	Message string
	Field   uint64
	Offset  int
	Reason  string
}

// Error is message, field, offset and reason in one line.
func (e *Error) Error() string {
	if e.Field == 0 {
		return fmt.Sprintf("decode %s at byte %d: %s", e.Message, e.Offset, e.Reason)
	}
	return fmt.Sprintf("decode %s, field %d, at byte %d: %s", e.Message, e.Field, e.Offset, e.Reason)
}

// unencodable is the refusal of a value that has no encoding.
func unencodable(field, value, reason string) error {
	return fmt.Errorf("encode command: %w", registry.Invalid(field, value, reason))
}
