// Package store keeps what Raft must not lose: the log and the votes in one bbolt file,
// the snapshots in directories beside it.
//
// It measures every call, knows when one hangs, cuts long deletions of a log's head
// into pieces so that an append never waits for seconds, and ends the process by way of
// Options.Fatal when a vote cannot be written. It starts no goroutine.
//
// Nothing on disk is believed: entries, term and vote have checksums, the file's pages are
// looked at before bbolt maps them, and what is not what was written ends the process,
// or refuses its start, with a message; see ErrDamaged. Nothing is mended.
package store
