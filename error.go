package paddock

import (
	"errors"
	"fmt"
)

// Kind is the kind of an error. Kinds are themselves errors: wrap one with %w
// where the kind is first known, and test for it with [errors.Is].
// The numbers cross the wire; they are never reordered.
type Kind uint8

const (
	// Internal is Paddock's own fault, or one that nobody classified.
	Internal Kind = iota
	// Invalid is a request that is wrong in itself; repeating it will not help.
	Invalid
	// NotFound is a sandbox, process, file or snapshot that does not exist.
	NotFound
	// Exists is something to be made that is already there.
	Exists
	// Denied is refused by a policy, a permission or a protected name.
	Denied
	// Unsupported is something that this tier or this host cannot do.
	Unsupported
	// Exhausted is a limit that was reached: memory, disk, processes, quota.
	Exhausted
	// Timeout is a deadline that passed.
	Timeout
	// Conflict is something that the present state does not allow, for
	// example a command in a paused sandbox.
	Conflict
	// Unavailable is a sandbox or server that cannot be reached (any more).
	Unavailable
	// Canceled is a call that its caller gave up.
	Canceled
)

var kindNames = [...]string{
	"internal error", "invalid", "not found", "already exists", "denied", "unsupported",
	"exhausted", "timed out", "conflict", "unavailable", "canceled",
}

// Error returns the kind in words.
func (k Kind) Error() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return fmt.Sprintf("error kind %d", uint8(k))
}

// KindOf returns the first Kind in the tree of err, or Internal where there is none.
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
	Exit    int    // exit status of the command line (sysexits where one fits)
}

// translations is the one table from kinds to protocols, by number.
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

// KindFromConnect is the inverse of Translate for Connect codes. An unknown
// code is an internal error.
func KindFromConnect(code string) Kind {
	for k, t := range translations {
		if t.Connect == code {
			return Kind(k)
		}
	}
	return Internal
}

// A StartError is a command that could not be started. Its Code is what a
// shell would exit with: 127 where the program does not exist, 126 where it
// exists and cannot be executed.
type StartError struct {
	Path string
	Code int
	Err  error // wraps a Kind and says why
}

func (e *StartError) Error() string { return fmt.Sprintf("start %s: %v", e.Path, e.Err) }

// Unwrap returns the cause.
func (e *StartError) Unwrap() error { return e.Err }

// A MissingError is a control or a capability that this host lacks, with what
// to do about it. It is [Unsupported].
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
