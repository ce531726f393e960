package interpreter

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/paddock-sandbox/paddock"
)

// A Kind is the kind of an event.
type Kind string

const (
	Begun  Kind = "begun"  // Count: the number of the cell in its context, from 1
	Stdout Kind = "stdout" // Text
	Stderr Kind = "stderr" // Text
	Shown  Kind = "result" // Result
	Failed Kind = "error"  // Error
	Ended  Kind = "end"    // always the last, once
)

// An Event reports progress of a running cell.
type Event struct {
	Kind   Kind      `json:"type"`
	Time   time.Time `json:"time"` // by the host's clock, on receipt
	Text   string    `json:"text,omitempty"`
	Count  int       `json:"count,omitempty"`
	Result *Result   `json:"result,omitempty"`
	Error  *Error    `json:"error,omitempty"`
}

// A Result is a value in one or more forms.
type Result struct {
	// Main is set for the value of the cell's last expression. Other results were displayed.
	Main bool `json:"main"`
	// Data maps media types to values: text is a string, pictures and PDF are strings of base64, and JSON types are
	// JSON values.
	Data map[string]json.RawMessage `json:"data"`
}

// Text returns the plain text of a result, or the empty string.
func (r *Result) Text() string {
	var text string
	_ = json.Unmarshal(r.Data["text/plain"], &text) // another type is no text
	return text
}

// errInterrupted is what kernels call a cell that was interrupted, where its language
// has no name for that.
const errInterrupted = "Interrupted"

// Names of errors that come from the host, and not from the language.
const (
	// ErrorEnded reports a kernel that ended in the middle of a cell; the value says why. The next cell starts the
	// context anew.
	ErrorEnded = "UnexpectedEndOfExecution"

	// ErrorTimeout reports a cell that was interrupted at its time limit, after the language's own error.
	ErrorTimeout = "ExecutionTimeout"
	// ErrorRoom reports a result, or an error, that the host had no room for: the host holds at most 64 MiB of unread
	// results for the cells of a sandbox.
	ErrorRoom = "ResultDropped"
)

// An Error is the failure of a cell, in the language's own words.
type Error struct {
	Name      string `json:"name"`
	Value     string `json:"value"`
	Traceback string `json:"traceback"`
}

// Bounds of one message's parts.
const (
	maxForms  = 32
	maxType   = 100
	maxName   = 1 << 10
	maxValue  = 256 << 10
	maxTrace  = 1 << 20
	maxEvents = 100_000 // results and errors of one cell
)

// A message is what a kernel says.
type message struct {
	Type string `json:"t"`
	Seq  int64  `json:"n,string"` // of the cell; 0 where it is not told

	Count int `json:"count"`

	Main bool  `json:"main"`
	Data forms `json:"data"`

	Name      string `json:"name"`
	Value     string `json:"value"`
	Traceback string `json:"traceback"`
}

// Forms are the values of a result by media type. Decoding stops at one form too many, because each
// takes much more memory than text.
type forms map[string]json.RawMessage

// UnmarshalJSON implements json.Unmarshaler.
func (f *forms) UnmarshalJSON(b []byte) error {
	d := json.NewDecoder(bytes.NewReader(b))
	begin, err := d.Token()
	if err != nil || begin == nil { // null is no form
		return err
	}
	if begin != json.Delim('{') {
		return errBroken
	}
	*f = forms{}
	for d.More() && len(*f) <= maxForms {
		name, err := d.Token()
		if err != nil {
			return err
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return err
		}
		if kind, ok := name.(string); ok {
			(*f)[kind] = value
		}
	}
	return nil
}

// Types of messages.
const (
	typeReady  = "ready" // once, on both streams
	typeBegun  = "begun" // before a cell
	typeEnd    = "end"   // after each cell, on both streams
	typeResult = "result"
	typeError  = "error"
)

// lostMessage is told in place of one that there was no room for.
const lostMessage = `{"t":"error","name":"` + ErrorRoom + `","value":"a result was dropped: others, of this sandbox, of its owner or of the whole server, are not taken yet, and there is no room for more"}`

// whole makes a message that holds took bytes of room valid, and takes room for what is longer then:
// two bytes may become four. It answers the bytes of room that it holds now. Without room it gives all
// back, and nothing is left of the message.
func whole(b []byte, took int, room *budget) ([]byte, int) {
	if utf8.Valid(b) {
		return b, took
	}
	valid := bytes.ToValidUTF8(b, []byte("\uFFFD"))
	more := len(valid) - len(b)
	switch {
	case took == 0 || more <= 0: // of one piece, or not longer
		return valid, took
	case !room.take(more):
		room.give(took)
		return nil, 0
	}
	return valid, took + more
}

// parseMessage reads a message of a kernel, which is valid UTF-8.
func parseMessage(b []byte) (message, error) {
	var m message
	if err := json.Unmarshal(b, &m); err != nil {
		return m, broken("a message that is no JSON")
	}
	switch m.Type {
	case typeReady, typeEnd:
		return message{Type: m.Type, Seq: m.Seq}, nil
	case typeBegun:
		return message{Type: m.Type, Seq: m.Seq, Count: max(m.Count, 0)}, nil
	case typeError:
		m.Name, m.Value, m.Traceback = cut(m.Name, maxName), cut(m.Value, maxValue), cut(m.Traceback, maxTrace)
		return m, nil
	case typeResult:
		if len(m.Data) == 0 || len(m.Data) > maxForms {
			return m, broken("a result with no form, or too many")
		}
		for kind, value := range m.Data {
			if err := checkForm(kind, value); err != nil {
				return m, err
			}
		}
		return m, nil
	}
	return m, broken("a message of an unknown type")
}

// checkForm says whether a media type is one, and its value what it has to be.
func checkForm(kind string, value json.RawMessage) error {
	if len(kind) > maxType || strings.Count(kind, "/") != 1 {
		return broken("a result whose media type is none")
	}
	for _, c := range []byte(kind) {
		if c <= ' ' || c > '~' || c == '"' || c == '\\' {
			return broken("a result whose media type is none")
		}
	}
	if jsonForm(kind) {
		return nil
	}
	if len(value) == 0 || value[0] != '"' {
		return broken("a result whose " + kind + " is no text")
	}
	return nil
}

// jsonForm tells whether the value of a media type is JSON and not text.
func jsonForm(kind string) bool {
	return kind == "application/json" || strings.HasSuffix(kind, "+json") || kind == TypeData || kind == TypeChart
}

// Paddock's own media types, which are JSON.
const (
	TypeData  = "application/vnd.paddock.data+json"  // a table: column to list of values
	TypeChart = "application/vnd.paddock.chart+json" // what a picture shows: docs/server/interpreter.md
)

// cut shortens text that is too long, between two characters. The rest is not kept in memory.
func cut(text string, n int) string {
	if len(text) <= n {
		return text
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return strings.Clone(text[:n])
}

// A decoder makes text of bytes that arrive in pieces: a character that is cut
// waits for its rest, and what is none is replaced.
type decoder struct{ hold []byte }

func (d *decoder) text(p []byte) string {
	d.hold = append(d.hold, p...)
	n := len(d.hold)
	for back := 1; back < utf8.UTFMax && back <= n; back++ {
		if c := d.hold[n-back]; utf8.RuneStart(c) {
			if !utf8.FullRune(d.hold[n-back:]) {
				n -= back
			}
			break
		}
	}
	text := strings.ToValidUTF8(string(d.hold[:n]), "\uFFFD")
	d.hold = append(d.hold[:0], d.hold[n:]...)
	return text
}

// rest gives what no more follows.
func (d *decoder) rest() string {
	text := strings.ToValidUTF8(string(d.hold), "\uFFFD")
	d.hold = nil
	return text
}

// checkText refuses what cannot be in a program or in its environment.
func checkText(code string, env map[string]string) error {
	if strings.ContainsRune(code, 0) || !utf8.ValidString(code) {
		return fmt.Errorf("the text holds a zero byte, or is not UTF-8: %w", paddock.Invalid)
	}
	for name, value := range env {
		ok := name != "" && utf8.ValidString(value) && !strings.ContainsRune(value, 0)
		for i, c := range []byte(name) {
			ok = ok && (c == '_' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' || i > 0 && c >= '0' && c <= '9')
		}
		if !ok {
			return fmt.Errorf("environment: %q is not a variable, or its value is not text: %w", name, paddock.Invalid)
		}
	}
	return nil
}
