// Package batch packs commands that come one by one into batches that travel together:
// log entries on the leader, calls to the leader on the others.
//
// A Queue holds what waits, bounded; Run sends it. There is no timer: while fewer than
// the allowed number of batches are on their way, what waits is sent at once, so an
// idle node adds no delay; under load batches grow by themselves.
package batch
