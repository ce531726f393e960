package policy

import (
	"fmt"
	"strings"

	"github.com/paddock-sandbox/paddock"
)

// A Problem is one error in a document, with its position.
type Problem struct {
	Line   int    `json:"line,omitempty"`   // from 1; 0 is unknown
	Column int    `json:"column,omitempty"` // from 1, in characters
	Key    string `json:"key,omitempty"`    // "network.rules[2].ports"
	Text   string `json:"text"`             // what is wrong
	Hint   string `json:"hint,omitempty"`   // what is allowed, or was meant
}

// Error holds the problems of one document, from one to MaxProblems. Its Kind is Invalid, or Unsupported where the
// document is correct and asks for something unavailable; see [paddock.KindOf].
type Error struct {
	Name     string    `json:"name"`
	Problems []Problem `json:"problems"`
	More     int       `json:"more,omitempty"` // problems that were found and are not listed
	Kind     paddock.Kind
}

// Error returns one line for each problem: "name:line:column: key: text (hint)".
func (e *Error) Error() string {
	var b strings.Builder
	for i, p := range e.Problems {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(p.In(e.Name))
	}
	if e.More > 0 {
		fmt.Fprintf(&b, "\n%s: and %d more problems", e.Name, e.More)
	}
	return b.String()
}

// Unwrap returns the kind.
func (e *Error) Unwrap() error { return e.Kind }

// In returns the problem in the document called name as one line.
func (p Problem) In(name string) string {
	var b strings.Builder
	b.WriteString(place(name, p.Line, p.Column))
	b.WriteString(": ")
	if p.Key != "" {
		b.WriteString(p.Key + ": ")
	}
	b.WriteString(p.Text)
	if p.Hint != "" {
		b.WriteString(" (" + p.Hint + ")")
	}
	return b.String()
}

func place(name string, line, column int) string {
	switch {
	case line == 0:
		return name
	case column == 0:
		return fmt.Sprintf("%s:%d", name, line)
	}
	return fmt.Sprintf("%s:%d:%d", name, line, column)
}
