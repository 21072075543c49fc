// Package arrows holds no code, only tests: which package may import which, and that
// the code every replica must run alike reads no clock, draws no random number, starts
// no goroutine and does not depend on the order of a map.
//
// A new package is a failure until it has a row in the table of imports_test.go.
package arrows
