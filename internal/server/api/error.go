package api

import (
	"errors"

	"github.com/paddock-sandbox/paddock"
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

// FromError encodes an error.
func FromError(err error) Error {
	e := Error{Kind: paddock.KindOf(err).Translate().Connect, Message: err.Error()}
	var start *paddock.StartError
	if errors.As(err, &start) {
		e.Start = &StartError{Path: Bytes(start.Path), Code: start.Code}
		if start.Err != nil {
			e.Start.Message = start.Err.Error()
		}
	}
	var missing *paddock.MissingError
	if errors.As(err, &missing) {
		e.Missing = &missing.Finding
	}
	return e
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
