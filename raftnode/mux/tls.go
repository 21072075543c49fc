package mux

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
)

// tlsError is a TLS handshake that failed, on either side.
type tlsError struct{ err error }

// Error says what the other side may have wrong.
func (e *tlsError) Error() string {
	var record tls.RecordHeaderError
	switch {
	case errors.As(e.err, &record), errors.Is(e.err, io.EOF):
		return fmt.Sprintf("TLS handshake: the other side does not speak TLS: %v", e.err)
	}
	return fmt.Sprintf("TLS handshake: %v", e.err)
}

// Unwrap is the error of the TLS library.
func (e *tlsError) Unwrap() error { return e.err }

// reason is the metric label.
func (e *tlsError) reason() string {
	var record tls.RecordHeaderError
	if errors.As(e.err, &record) {
		return "not_tls"
	}
	return "certificate"
}
