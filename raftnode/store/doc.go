// Package store keeps what Raft must not lose: the log and the votes in one bbolt file,
// the snapshots in directories beside it.
//
// It measures every call, knows when one hangs, cuts long deletions of a log's head
// into pieces so that an append never waits for seconds, and ends the process by way of
// Options.Fatal when a vote cannot be written. It starts no goroutine.
package store
