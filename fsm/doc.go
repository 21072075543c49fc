// Package fsm is the replicated state of the registry: it applies the commands of the
// log, in batches, to registry's double map and to what stands beside it (leases,
// tombstones, namespaces, switches), keeps the applied index together with the state,
// feeds changes to listeners, and writes and reads snapshots.
//
// What Apply does follows from the log alone: no clock, no random number, no setting of
// the node and no map order reaches the state, a result or an id, and nothing visible
// depends on how Raft cuts the log into batches. A refused command is a result, never a
// panic. An entry that this build cannot read stops the node before anything of its
// batch is applied.
//
// The package starts one goroutine, the feed's notifier, in New; Close stops it and
// waits for it.
package fsm
