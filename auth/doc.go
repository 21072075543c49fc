// Package auth tells who a caller is and what he may do: passwords, tokens, permissions
// and the lock-out after wrong passwords.
//
// The accounts are part of the replicated state; this package only reads them. What it
// keeps itself, failed tries and passwords that were right a moment ago, belongs to one
// node, is bounded and is lost with the process. It starts no goroutine, logs nothing and
// puts no password and no token into an error.
package auth
