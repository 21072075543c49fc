package registry

import "strings"

// Code classifies an Error. Codes travel between nodes: the numbers are for good.
type Code uint8

// The codes, grouped by what a caller can do about them.
const (
	// Bad input or a state that contradicts the request: repeating it does not help.
	CodeInvalid           Code = 1
	CodeServiceNotFound   Code = 2
	CodeInstanceNotFound  Code = 3
	CodeServiceExists     Code = 4
	CodeServiceNotEmpty   Code = 5
	CodeKindMismatch      Code = 6
	CodeTombstoned        Code = 7
	CodeTooManyInstances  Code = 8
	CodeNamespaceNotFound Code = 9
	CodeNamespaceExists   Code = 10
	CodeNamespaceNotEmpty Code = 11
	CodeGuardFailed       Code = 12
	CodeUnsupported       Code = 13
	CodeUserExists        Code = 14
	CodeUserNotFound      Code = 15

	// The cluster cannot serve now: another try, perhaps at another node, may succeed.
	CodeNotLeader    Code = 32
	CodeNoLeader     Code = 33
	CodeUncertain    Code = 34
	CodeOverloaded   Code = 35
	CodeNotReady     Code = 36
	CodeDiskFull     Code = 37
	CodeShuttingDown Code = 38
	CodeTimeout      Code = 39
)

// Error is an error of the registry that can cross the wire between nodes. It
// matches, by errors.Is, every Error of the same Code, so callers compare with the
// sentinels below and read Field and Value when they want to show them.
type Error struct {
	Code   Code
	Field  string // the parameter at fault, if any
	Value  string // what came, shortened to at most 128 bytes
	Reason string
}

// The sentinels. Operations return them, or Errors of the same code with more words.
var (
	// ErrInvalid says that a value is outside its rules; see Invalid.
	ErrInvalid = &Error{Code: CodeInvalid, Reason: "invalid value"}
	// ErrServiceNotFound says that a command needs a service that does not exist.
	ErrServiceNotFound = &Error{Code: CodeServiceNotFound, Reason: "service not found"}
	// ErrInstanceNotFound says that a command needs an instance that does not exist.
	ErrInstanceNotFound = &Error{Code: CodeInstanceNotFound, Reason: "instance not found"}
	// ErrServiceExists refuses the creation of a service that is there.
	ErrServiceExists = &Error{Code: CodeServiceExists, Reason: "service already exists"}
	// ErrServiceNotEmpty refuses the deletion of a service that has instances.
	ErrServiceNotEmpty = &Error{Code: CodeServiceNotEmpty, Reason: "service has instances"}
	// ErrKindMismatch refuses a request that names the other kind, ephemeral or
	// persistent, than the one under which the key is registered.
	ErrKindMismatch = &Error{Code: CodeKindMismatch, Reason: "instance is registered as the other kind"}
	// ErrTombstoned refuses a registration made by a beat of an instance that was
	// deregistered a moment ago.
	ErrTombstoned = &Error{Code: CodeTombstoned, Reason: "instance was deregistered a moment ago"}
	// ErrTooManyInstances says that the service holds MaxInstances already.
	ErrTooManyInstances = &Error{Code: CodeTooManyInstances, Reason: "service is full"}
	// ErrNamespaceNotFound, ErrNamespaceExists and ErrNamespaceNotEmpty belong to the
	// namespace records.
	ErrNamespaceNotFound = &Error{Code: CodeNamespaceNotFound, Reason: "namespace not found"}
	ErrNamespaceExists   = &Error{Code: CodeNamespaceExists, Reason: "namespace already exists"}
	ErrNamespaceNotEmpty = &Error{Code: CodeNamespaceNotEmpty, Reason: "namespace holds services"}
	// ErrGuardFailed says that a conditional command (revision, term, cluster id)
	// met another state than the one it was made for. State is unchanged.
	ErrGuardFailed = &Error{Code: CodeGuardFailed, Reason: "state changed meanwhile"}
	// ErrUnsupported says that the cluster's feature level does not allow the command yet.
	ErrUnsupported = &Error{Code: CodeUnsupported, Reason: "not supported by all members yet"}

	// ErrUserExists and ErrUserNotFound belong to the accounts.
	ErrUserExists   = &Error{Code: CodeUserExists, Reason: "user already exists"}
	ErrUserNotFound = &Error{Code: CodeUserNotFound, Reason: "user not found"}

	// ErrNotLeader says that this node does not lead; nothing was proposed.
	ErrNotLeader = &Error{Code: CodeNotLeader, Reason: "not the leader"}
	// ErrNoLeader says that no leader was found before the deadline; nothing was proposed.
	ErrNoLeader = &Error{Code: CodeNoLeader, Reason: "no leader"}
	// ErrUncertain says that the command may or may not take effect.
	ErrUncertain = &Error{Code: CodeUncertain, Reason: "outcome unknown"}
	// ErrOverloaded says that a bounded queue is full; nothing was proposed.
	ErrOverloaded = &Error{Code: CodeOverloaded, Reason: "too many requests in flight"}
	// ErrNotReady says that this node has not caught up since its start.
	ErrNotReady = &Error{Code: CodeNotReady, Reason: "node is not ready"}
	// ErrDiskFull refuses writes while the data directory is nearly full.
	ErrDiskFull = &Error{Code: CodeDiskFull, Reason: "disk is nearly full"}
	// ErrShuttingDown says that this node is stopping; nothing was proposed.
	ErrShuttingDown = &Error{Code: CodeShuttingDown, Reason: "node is shutting down"}
	// ErrTimeout says that a wait without side effects ended by its deadline.
	ErrTimeout = &Error{Code: CodeTimeout, Reason: "deadline exceeded"}
)

// Error is the reason, with field and value when there are any.
func (e *Error) Error() string {
	if e.Field == "" {
		return e.Reason
	}
	return e.Field + " " + quote(e.Value) + ": " + e.Reason
}

// Is matches every Error of the same code.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Code == e.Code
}

// Because is e with another reason; the code stays.
func (e *Error) Because(reason string) *Error {
	return &Error{Code: e.Code, Field: e.Field, Value: e.Value, Reason: reason}
}

// Invalid is an ErrInvalid that names the field, what came and why it is refused.
func Invalid(field, value, reason string) *Error {
	return &Error{Code: CodeInvalid, Field: field, Value: shorten(value), Reason: reason}
}

const maxShownValue = 128

// shorten makes a value fit to be shown and sent: short, and UTF-8 whatever came.
func shorten(s string) string {
	if len(s) > maxShownValue {
		return strings.ToValidUTF8(s[:maxShownValue-3], "") + "..."
	}
	return strings.ToValidUTF8(s, "?")
}

func quote(s string) string { return `"` + s + `"` }
