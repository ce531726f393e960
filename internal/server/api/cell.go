package api

import (
	"encoding/json"
	"time"
)

// A Cell is code to run in a context that keeps its state. It runs in Context, or in
// the default context of Language, which is made when it is first used; naming
// neither is Python's.
type Cell struct {
	Code     string            `json:"code"`
	Context  string            `json:"context,omitempty"`
	Language string            `json:"language,omitempty"`
	Env      map[string]string `json:"env,omitempty"`     // for this cell alone
	Timeout  time.Duration     `json:"timeout,omitempty"` // nanoseconds; zero is no bound
}

// A NewContext says what context to make: everything has a default.
type NewContext struct {
	Language string            `json:"language,omitempty"` // empty is Python
	Dir      string            `json:"dir,omitempty"`      // empty is the sandbox's
	Env      map[string]string `json:"env,omitempty"`
}

// A Context is a language with its state.
type Context struct {
	ID       string    `json:"id"`
	Language string    `json:"language"`
	Dir      string    `json:"dir"`
	Default  bool      `json:"default,omitempty"` // the one of its language for cells that name none
	Created  time.Time `json:"created"`
}

// Contexts lists them.
type Contexts struct {
	Contexts []Context `json:"contexts"`
}

// A CellEvent is a line of a cell's answer. Type is begun, stdout, stderr, result,
// error, end (the last), fail (the last too: the cell was cut, and Fail says why) or
// alive (nothing happened).
type CellEvent struct {
	Type   string      `json:"type"`
	Time   time.Time   `json:"time,omitzero"`
	Text   string      `json:"text,omitempty"`
	Count  int         `json:"count,omitempty"`
	Result *CellResult `json:"result,omitempty"`
	Error  *CellError  `json:"error,omitempty"`
	Fail   *Error      `json:"fail,omitempty"`
}

// A CellResult is a value by media type: text, base64 of pictures and of PDF, or
// whatever JSON a type of JSON has. Main is that of the cell's last expression.
type CellResult struct {
	Main bool                       `json:"main"`
	Data map[string]json.RawMessage `json:"data"`
}

// A CellError is how a cell failed.
type CellError struct {
	Name      string `json:"name"`
	Value     string `json:"value"`
	Traceback string `json:"traceback"`
}
