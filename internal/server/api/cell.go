package api

import (
	"encoding/json"
	"time"
)

// A Cell is code to run in a context that keeps its state. It runs in Context, or else in
// the default context of Language, which is made at its first use. If both are empty, the
// language is Python.
type Cell struct {
	Code     string            `json:"code"`
	Context  string            `json:"context,omitempty"`
	Language string            `json:"language,omitempty"`
	Env      map[string]string `json:"env,omitempty"`     // for this cell only
	Timeout  time.Duration     `json:"timeout,omitempty"` // nanoseconds; zero sets no bound
}

// A NewContext describes a context to make. Every field has a default.
type NewContext struct {
	Language string            `json:"language,omitempty"` // empty is Python
	Dir      string            `json:"dir,omitempty"`      // empty is the sandbox's directory
	Env      map[string]string `json:"env,omitempty"`
}

// A Context keeps the state of the cells that run in it.
type Context struct {
	ID       string    `json:"id"`
	Language string    `json:"language"`
	Dir      string    `json:"dir"`
	Default  bool      `json:"default,omitempty"` // the default context of its language
	Created  time.Time `json:"created"`
}

// Contexts is a list of contexts.
type Contexts struct {
	Contexts []Context `json:"contexts"`
}

// A CellEvent is a line of the answer to a cell. Type is begun, stdout, stderr, result,
// error, end, fail or alive. The last line is end, or fail if the cell was cut off; then
// Fail has the error. An alive line only keeps the connection open.
type CellEvent struct {
	Type   string      `json:"type"`
	Time   time.Time   `json:"time,omitzero"`
	Text   string      `json:"text,omitempty"`
	Count  int         `json:"count,omitempty"`
	Result *CellResult `json:"result,omitempty"`
	Error  *CellError  `json:"error,omitempty"`
	Fail   *Error      `json:"fail,omitempty"`
}

// A CellResult is a value by media type: text, base64 for images and PDF, or a JSON value
// for JSON types. Main is true for the value of the cell's last expression.
type CellResult struct {
	Main bool                       `json:"main"`
	Data map[string]json.RawMessage `json:"data"`
}

// A CellError is the error that ended a cell.
type CellError struct {
	Name      string `json:"name"`
	Value     string `json:"value"`
	Traceback string `json:"traceback"`
}
