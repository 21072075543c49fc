package wire_test

import "google.golang.org/protobuf/reflect/protoreflect"

// unknown tells whether a message or one inside it has fields that its type lacks.
func unknown(m protoreflect.Message) bool {
	found := len(m.GetUnknown()) > 0
	m.Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case fd.Message() == nil:
		case fd.IsList():
			for i := range v.List().Len() {
				found = found || unknown(v.List().Get(i).Message())
			}
		default:
			found = found || unknown(v.Message())
		}
		return true
	})
	return found
}
