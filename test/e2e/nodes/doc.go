// Package nodes runs clusters of real rollcall processes for tests: it builds the
// binary, gives each node ports and a directory, sends signals, asks over HTTP, keeps
// instances beating and writers writing, and prints every node's log when a test fails.
//
// Nothing of the product is linked in: what it knows of a node is what any client sees.
package nodes
