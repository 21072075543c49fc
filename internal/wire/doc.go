// Package wire is the byte form of what outlives a process or leaves it: log entries
// and their commands, the records of a snapshot, and the calls between peers. It
// translates to and from the types of registry and decides nothing.
//
// Log entries and records are protobuf, described by log.proto and snapshot.proto, but
// written and read by the small functions of this package: they run for every
// registration on every node, the generated code takes three times as long to read one,
// and protobuf libraries promise neither a canonical form nor the refusal of unknown
// fields. The generated code is the oracle of this package's tests.
//
// The form is canonical: fields in ascending order, numbers in their shortest form,
// defaults left out, metadata sorted. Decoders accept nothing else, so a value has
// exactly one encoding, and a field, kind or version that this build does not know is
// an *Error that says which. They allocate in proportion to the input.
package wire
