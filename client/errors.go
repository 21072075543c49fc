package client

import (
	"errors"
	"fmt"
)

// Errors that callers match with errors.Is: what is returned wraps them.
var (
	// ErrClosed: the client, or the followed service, has been closed. It stays so.
	ErrClosed = errors.New("closed")
	// ErrNoInstance: the service has no instance that may get traffic, or nothing is known
	// of it yet. It may pass.
	ErrNoInstance = errors.New("no instance")
	// ErrUnavailable: no server gave an answer to count on before the deadline, that of
	// the context or Options.Timeout. It matches the context's error too when that ended
	// the call, and may match the *ServerError of the last answer.
	ErrUnavailable = errors.New("no server available")
	// ErrPending: what was asked for has not happened, as far as is known, and goes on in
	// the background until it does; Registrations shows how far it is.
	ErrPending = errors.New("pending")
	// ErrUnknown: the instance is not registered by this client.
	ErrUnknown = errors.New("not registered here")
)

// InvalidError is a value that the client refuses before it asks a server. It comes as a
// pointer, for errors.As.
type InvalidError struct {
	Field  string // of Options or RegistrarOptions, a metadata key, or service, ip, port, weight, cluster, …
	Value  string // what came, as text
	Reason string // the rule, with its limit
}

// Error names the field, what came and the rule.
func (e *InvalidError) Error() string {
	return fmt.Sprintf("%s %q: %s", e.Field, e.Value, e.Reason)
}

func invalid(field, value, reason string) error {
	return &InvalidError{Field: field, Value: value, Reason: reason}
}

// ServerError is an answer that is no success: any status but 200, and whatever is not
// "ok" where that is the only good answer, for which Status is 502. It comes as a pointer,
// for errors.As.
type ServerError struct {
	Op     string // register, deregister, beat, list, watch, names, status or login
	Server string // base URL without credentials
	Status int    // of HTTP
	Text   string // the beginning of the body, 512 bytes at most
}

// Error tells who refused what and why.
func (e *ServerError) Error() string {
	return fmt.Sprintf("%s at %s: %d %s", e.Op, e.Server, e.Status, e.Text)
}

// Refused tells that the server has understood and said no, so that asking again, there
// or elsewhere, gives the same: 4xx, except 408 and 429, which pass, and 401 and 403 of
// all but a login, since rights change. Redirects and 5xx are no refusals.
func (e *ServerError) Refused() bool {
	switch e.Status {
	case 401, 403:
		return e.Op == opLogin // rights change, a wrong password does not
	case 408, 429:
		return false
	}
	return e.Status >= 400 && e.Status < 500
}

func refused(err error) bool {
	var e *ServerError
	return errors.As(err, &e) && e.Refused()
}

// denied tells that the server refuses for lack of rights.
func denied(err error) bool {
	var e *ServerError
	return errors.As(err, &e) && (e.Status == 401 || e.Status == 403)
}
