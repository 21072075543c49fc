// Package registry is the domain of rollcall: keys, instances, services, the
// double map that holds them, the instance-list diff, selection, validation, the
// commands that change state and the errors that everybody matches.
//
// It is pure. It reads no clock, draws no random number, takes no lock, starts no
// goroutine and does no I/O; it imports the standard library only. Time comes in as
// a value, stamped by whoever proposes a command. Everything published by a State
// (Instance, Service, Metadata) is immutable: readers keep what they got and must
// not modify it.
package registry
