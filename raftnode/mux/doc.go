// Package mux shares one TCP port between the Raft transport and the calls between
// nodes, and keeps strangers away from both.
//
// A connection belongs to nobody until it has proven itself: within a second it must
// show that it knows the cluster secret (challenge and response in both directions) or
// hold a TLS certificate of the cluster, and both sides name themselves. Only then it
// is handed to the Raft or to the RPC listener. The number of unproven connections is
// bounded, nothing is allocated for what a stranger announces, and what is refused is
// counted and logged at a bounded rate.
//
// The mux owns one goroutine that accepts and one for each unproven connection; Close
// ends them, closes every connection that ever passed through, and waits.
package mux
