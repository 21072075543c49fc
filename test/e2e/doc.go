// Package e2e holds tests with clusters of real processes: the binary is built once, and
// nodes are killed, stopped, drained, wiped and filled up while clients go on.
//
// `go test ./test/e2e` runs each test in a short form with short timeouts per instance,
// about four minutes in all. With ROLLCALL_E2E=long in the environment the leader is
// killed 20 times instead of three, pauses last 40 s, and expiry is also measured with
// the default timeouts of 15 and 30 s; that takes about ten minutes.
//
// The test with a full disk mounts a small tmpfs for each node and so needs root; without
// it that test is skipped, and says so. Everything else needs nothing but Go.
package e2e
