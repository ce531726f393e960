package paddock

import (
	"errors"
	"fmt"
)

// Kind is the kind of an error. A Kind is itself an error: wrap it with %w where the kind
// is first known, and test for it with [errors.Is]. Kinds cross the network by number, so
// their order never changes.
type Kind uint8

const (
	// Internal is a fault of Paddock, or an error without a kind.
	Internal Kind = iota
	// Invalid means that the request itself is wrong. Repeating it does not help.
	Invalid
	// NotFound means that a sandbox, process, file or snapshot does not exist.
	NotFound
	// Exists means that the object to be made already exists.
	Exists
	// Denied means that a policy, a permission or a protected name refuses the operation.
	Denied
	// Unsupported means that this tier or this host cannot do what was asked.
	Unsupported
	// Exhausted means that a limit was reached: memory, disk, processes or a quota.
	Exhausted
	// Timeout means that a deadline passed.
	Timeout
	// Conflict means that the present state does not allow the operation, for example a
	// command in a paused sandbox.
	Conflict
	// Unavailable means that a sandbox or server cannot be reached, or can no longer be
	// reached.
	Unavailable
	// Canceled means that the caller gave up the call.
	Canceled
)

var kindNames = [...]string{
	"internal error", "invalid", "not found", "already exists", "denied", "unsupported",
	"exhausted", "timed out", "conflict", "unavailable", "canceled",
}

// Error returns the name of the kind.
func (k Kind) Error() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return fmt.Sprintf("error kind %d", uint8(k))
}

// KindOf returns the first Kind in the tree of err, or Internal if there is none.
// KindOf(nil) is Internal too, so check err first.
func KindOf(err error) Kind {
	var k Kind
	if errors.As(err, &k) {
		return k
	}
	return Internal
}

// A Translation says how a kind appears in the protocols that Paddock speaks.
type Translation struct {
	HTTP    int    // status code
	Connect string // code of the Connect and gRPC protocols
	Exit    int    // exit status of the command line
}

// translations maps kinds, by number, to their form in each protocol.
var translations = [...]Translation{
	Internal:    {500, "internal", 125},
	Invalid:     {400, "invalid_argument", 125},
	NotFound:    {404, "not_found", 125},
	Exists:      {409, "already_exists", 125},
	Denied:      {403, "permission_denied", 125},
	Unsupported: {501, "unimplemented", 125},
	Exhausted:   {429, "resource_exhausted", 125},
	Timeout:     {504, "deadline_exceeded", 125},
	Conflict:    {409, "failed_precondition", 125},
	Unavailable: {503, "unavailable", 125},
	Canceled:    {499, "canceled", 125},
}

// Translate returns how k appears in each protocol. An unknown kind is Internal.
func (k Kind) Translate() Translation {
	if int(k) < len(translations) {
		return translations[k]
	}
	return translations[Internal]
}

// KindFromConnect returns the first kind that Translate maps to a Connect code. An unknown
// code is an internal error.
func KindFromConnect(code string) Kind {
	for k, t := range translations {
		if t.Connect == code {
			return Kind(k)
		}
	}
	return Internal
}

// A StartError reports that a command could not be started. Code is the exit status that a
// shell would use: 127 if the program does not exist, 126 if it exists and cannot be
// executed.
type StartError struct {
	Path string
	Code int
	Err  error // wraps a Kind and gives the reason
}

func (e *StartError) Error() string { return fmt.Sprintf("start %s: %v", e.Path, e.Err) }

// Unwrap returns the cause.
func (e *StartError) Unwrap() error { return e.Err }

// A MissingError reports a control or capability that this host lacks, with the remedy. It
// is [Unsupported].
type MissingError struct {
	Finding Finding
}

func (e *MissingError) Error() string {
	s := fmt.Sprintf("%s: %s", e.Finding.Control, e.Finding.Cause)
	if e.Finding.Remedy != "" {
		s += "; remedy: " + e.Finding.Remedy
	}
	return s
}

// Unwrap returns [Unsupported].
func (e *MissingError) Unwrap() error { return Unsupported }
