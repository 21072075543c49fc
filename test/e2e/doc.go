// Package e2e holds tests with clusters of real processes: the binary is built once, and
// nodes are killed, stopped, drained, wiped and filled up while clients go on.
//
// `go test ./test/e2e` runs each test in a short form with short timeouts per instance,
// about five minutes in all. With ROLLCALL_E2E=long in the environment the leader is
// killed 20 times instead of three, pauses last 40 s, and expiry is also measured with
// the default timeouts of 15 and 30 s; that takes about a quarter of an hour.
//
// The tests with a full disk mount a small tmpfs for each node, those with partitions make
// network namespaces: they need root, the latter also `ip` and `iptables`. Without these
// they are skipped, and say so. Everything else needs nothing but Go.
package e2e
