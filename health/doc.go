// Package health keeps the registered alive and lets the dead go: beats and leases,
// the expiry scanner, and the active probes of persistent instances.
//
// When a lease was last renewed is known to the leader alone, in a table in its memory
// that is made when its term begins and dropped when it ends. Beats never enter the
// log; only what they change does: a flip of health, an eviction, a registration made
// by a full beat. A node that does not lead collects its clients' beats, keeps one batch
// in flight to the leader, and hands the leader's verdicts back.
//
// What holds everywhere: late is allowed, early never. All arithmetic is on one node's
// monotonic clock, in durations; times of two nodes are never compared.
//
// The package starts no goroutine of its own accord. Keeper.Run (every node) and
// Keeper.Lead (a term of the leader) block, and have stopped and waited for whatever
// they started when they return.
package health
