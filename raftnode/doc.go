// Package raftnode runs one member of the cluster: Raft with its stores and transport,
// the peer port, the forming of a cluster and the joining of nodes, leadership and the
// work that only a leader does, and the way of a command into the log from any node.
//
// It decides nothing about the registry's state: commands are packed into entries
// here and applied by the FSM that it is given. No other package but fsm sees Raft.
//
// A Node is opened, started, and stopped in two steps: PrepareStop hands leadership
// over while the node still forwards, Stop ends the rest. Every goroutine belongs to
// the Node's group and ends with Stop; those of a leader's term belong to the term and
// end before the next one begins.
package raftnode
