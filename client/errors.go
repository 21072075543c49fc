package client

import (
	"errors"
	"fmt"
)

// Errors that callers match with errors.Is.
var (
	// ErrClosed: the client, or the followed service, has been closed.
	ErrClosed = errors.New("closed")
	// ErrNoInstance: the service has no instance that may get traffic.
	ErrNoInstance = errors.New("no instance")
	// ErrUnavailable: no server gave an answer to count on before the deadline.
	ErrUnavailable = errors.New("no server available")
	// ErrPending: what was asked for has not happened yet and goes on in the background.
	ErrPending = errors.New("pending")
	// ErrUnknown: the instance was not registered by this client.
	ErrUnknown = errors.New("not registered here")
)

// InvalidError is a value that the client refuses before it asks a server.
type InvalidError struct {
	Field  string
	Value  string
	Reason string
}

// Error names the field, what came and the rule.
func (e *InvalidError) Error() string {
	return fmt.Sprintf("%s %q: %s", e.Field, e.Value, e.Reason)
}

func invalid(field, value, reason string) error {
	return &InvalidError{Field: field, Value: value, Reason: reason}
}

// ServerError is an answer that is no success.
type ServerError struct {
	Op     string // register, beat, list, …
	Server string // base URL without credentials
	Status int    // of HTTP
	Text   string // the beginning of the body
}

// Error tells who refused what and why.
func (e *ServerError) Error() string {
	return fmt.Sprintf("%s at %s: %d %s", e.Op, e.Server, e.Status, e.Text)
}

// Refused tells that the server has understood and said no, so that asking again, there
// or elsewhere, gives the same.
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
