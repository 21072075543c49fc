package httpapi

import (
	"context"
	"errors"
	"net/http"

	"github.com/rollcall-io/rollcall/registry"
)

// Texts that clients see when the cluster or this node cannot serve now.
const (
	notReadyText  = "server is STARTINGnow, please try again later!"
	uncertainText = "outcome unknown: the write may or may not take effect"
	internalText  = "internal error, see the log of this node"
)

// reply is an error as it goes over the wire. It is an error itself, so that a handler
// can return one with the text that Nacos has for its route.
type reply struct {
	status int
	text   string
	// code is that of the open API; 0 means the one that goes with the status.
	code int
	// bare leaves out the `caused: …;` of the façade's errors.
	bare bool
	// plain leaves out the envelope of the open API.
	plain bool
	// retry adds Retry-After: 1.
	retry bool
	// closing ends the connection after the answer.
	closing bool
}

// Error is the text.
func (e *reply) Error() string { return e.text }

// illegal is what Nacos answers to an illegal argument: 400.
func illegal(text string) error { return &reply{status: http.StatusBadRequest, text: text} }

// failed is what Nacos 1.4 answers to its own exceptions, whatever code they carry: 500.
func failed(text string) error { return &reply{status: http.StatusInternalServerError, text: text} }

func missing(name string) error   { return illegal("Param '" + name + "' is required.") }
func notNumber(text string) error { return illegal("For input string: \"" + shorten(text) + "\"") }

// errorTable says how each code of the registry is answered where the route has no text
// of its own. A text of "" means the error's own words. Clients turn to another node on
// 503 alone, and never is 307, 409, 425 or 429 sent to them.
var errorTable = map[registry.Code]reply{
	registry.CodeInvalid:           {status: http.StatusBadRequest},
	registry.CodeServiceNotFound:   {status: http.StatusNotFound, code: codeServiceNotExist},
	registry.CodeInstanceNotFound:  {status: http.StatusNotFound, code: codeNotFound},
	registry.CodeServiceExists:     {status: http.StatusBadRequest, code: codeServiceExists},
	registry.CodeServiceNotEmpty:   {status: http.StatusBadRequest, code: codeServiceDelete},
	registry.CodeKindMismatch:      {status: http.StatusBadRequest, code: codeInstance},
	registry.CodeTombstoned:        {status: http.StatusBadRequest},
	registry.CodeTooManyInstances:  {status: http.StatusBadRequest, code: codeInstance},
	registry.CodeNamespaceNotFound: {status: http.StatusNotFound, code: codeNamespaceMissing},
	registry.CodeNamespaceExists:   {status: http.StatusBadRequest, code: codeNamespaceIllegal},
	registry.CodeNamespaceNotEmpty: {status: http.StatusBadRequest, code: codeNamespaceIllegal},
	registry.CodeGuardFailed:       {status: http.StatusBadRequest},
	registry.CodeUnsupported:       {status: http.StatusServiceUnavailable},
	registry.CodeUserExists:        {status: http.StatusBadRequest},
	registry.CodeUserNotFound:      {status: http.StatusBadRequest},

	registry.CodeNotLeader:    {status: http.StatusServiceUnavailable},
	registry.CodeNoLeader:     {status: http.StatusServiceUnavailable},
	registry.CodeUncertain:    {status: http.StatusServiceUnavailable, text: uncertainText},
	registry.CodeOverloaded:   {status: http.StatusServiceUnavailable, retry: true},
	registry.CodeNotReady:     {status: http.StatusServiceUnavailable, text: notReadyText, bare: true},
	registry.CodeDiskFull:     {status: http.StatusServiceUnavailable},
	registry.CodeShuttingDown: {status: http.StatusServiceUnavailable},
	registry.CodeTimeout:      {status: http.StatusServiceUnavailable},
}

// replyTo turns any error into its answer; known is false for those that are faults of
// ours and belong in the log.
func replyTo(err error) (e *reply, known bool) {
	if errors.As(err, &e) {
		return e, true
	}
	var re *registry.Error
	if errors.As(err, &re) {
		row, found := errorTable[re.Code]
		if !found {
			return &reply{status: http.StatusInternalServerError, text: internalText}, false
		}
		if row.text == "" {
			row.text = re.Error()
		}
		if re.Code == registry.CodeInvalid {
			row.code = v2Fields[re.Field]
		}
		return &row, true
	}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return &reply{status: http.StatusServiceUnavailable, text: uncertainText}, true
	}
	return &reply{status: http.StatusInternalServerError, text: internalText}, false
}

// maxEcho bounds what an error repeats of the request.
const maxEcho = 512

func shorten(s string) string {
	if len(s) <= maxEcho {
		return s
	}
	return s[:maxEcho-3] + "..."
}
