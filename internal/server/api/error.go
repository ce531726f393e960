package api

import (
	"errors"
	"strings"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/jsonbody"
)

// An Error is the body of every answer without a success status.
type Error struct {
	// Kind is a code of the Connect protocol; paddock.Kind.Translate has the table.
	Kind    string           `json:"kind"`
	Message string           `json:"message"`
	Start   *StartError      `json:"start,omitempty"`   // a command that could not be started
	Missing *paddock.Finding `json:"missing,omitempty"` // a control that the host lacks
	Request string           `json:"request,omitempty"` // the request's ID, as in the log
}

// A StartError encodes a paddock.StartError.
type StartError struct {
	Path    Bytes  `json:"path"`
	Code    int    `json:"code"`
	Message string `json:"message"`
}

// A Failure is the body that holds an Error.
type Failure struct {
	Error Error `json:"error"`
}

// longPath is the maximum of the path of a StartError, in bytes.
const longPath = 4 << 10

// FromError encodes an error. Each of its texts has at most 4 KiB, because errors quote what clients and
// guests sent, of any length.
func FromError(err error) Error {
	e := Error{Kind: paddock.KindOf(err).Translate().Connect, Message: jsonbody.Short(err.Error())}
	var start *paddock.StartError
	if errors.As(err, &start) {
		path := start.Path[:min(len(start.Path), longPath)]
		e.Start = &StartError{Path: Bytes(strings.Clone(path)), Code: start.Code}
		if start.Err != nil {
			e.Start.Message = jsonbody.Short(start.Err.Error())
		}
	}
	var missing *paddock.MissingError
	if errors.As(err, &missing) {
		f := missing.Finding
		e.Missing = &paddock.Finding{
			Control: paddock.Control(jsonbody.Short(string(f.Control))), Strength: f.Strength,
			How: jsonbody.Short(f.How), Cause: jsonbody.Short(f.Cause), Remedy: jsonbody.Short(f.Remedy),
		}
	}
	return e
}

// Keep returns an error to keep in place of err. It has what FromError encodes of err, and refers to
// nothing else. Keep(nil) is nil.
func Keep(err error) error {
	if err == nil {
		return nil
	}
	return FromError(err).Err()
}

// Err decodes the error, with its kind.
func (e Error) Err() error {
	kind := paddock.KindFromConnect(e.Kind)
	message := e.Message
	if message == "" {
		message = kind.Error()
	}
	told := &remote{text: message, kind: kind}
	switch {
	case e.Start != nil:
		told.inner = &paddock.StartError{Path: string(e.Start.Path), Code: e.Start.Code, Err: &remote{text: e.Start.Message, kind: kind}}
	case e.Missing != nil:
		told.inner = &paddock.MissingError{Finding: *e.Missing}
	}
	return told
}

// A remote is an error from the other side.
type remote struct {
	text  string
	kind  paddock.Kind
	inner error // nil, or the StartError or MissingError that it also is
}

func (r *remote) Error() string { return r.text }

func (r *remote) Unwrap() []error {
	if r.inner == nil {
		return []error{r.kind}
	}
	return []error{r.kind, r.inner}
}
