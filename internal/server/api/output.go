package api

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/paddock-sandbox/paddock"
)

// EventType is the content type of a stream of text events (Server-Sent Events). The data
// of each event is one line of JSON.
const EventType = "text/event-stream"

// An Output is one step of a process's output, as text. Exactly one field is set, beside
// Next.
type Output struct {
	Begin  *Begun        `json:"begin,omitempty"` // always the first
	Stdout *Bytes        `json:"stdout,omitempty"`
	Stderr *Bytes        `json:"stderr,omitempty"`
	Next   int64         `json:"next,omitempty"` // offset after the bytes of Stdout or Stderr
	Alive  bool          `json:"alive,omitempty"`
	Exit   *paddock.Exit `json:"exit,omitempty"`  // the last
	Error  *Error        `json:"error,omitempty"` // the last instead of Exit
}

// Encode returns v as one line of JSON without its end. Unlike json.Marshal it leaves <, >
// and & as they are, because people read the line.
func Encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, fmt.Errorf("encode as JSON: %w", err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
