// Package operand reads the numbers and words that GNU tools have in their
// arguments, and complains of them in GNU's ways.
package operand

import (
	"strings"

	"github.com/paddock-sandbox/paddock/internal/driver/sim/proc"
	"github.com/paddock-sandbox/paddock/internal/driver/sim/quote"
	"github.com/paddock-sandbox/paddock/internal/driver/sim/vfs"
)

// Quote puts text between quotation marks, as complaints do with what is
// wrong: ‘text’.
func Quote(s string) string { return quote.Curly(s) }

// File writes a file's name as it stands before a colon in a complaint: as it
// is, or quoted for a shell if a shell would not take it as it is.
func File(s string) string {
	if strings.IndexByte(s, ':') >= 0 {
		return quote.Name(s)
	}
	return quote.Shell(s)
}

// Always is File with quotes in any case.
func Always(s string) string { return quote.Name(s) }

// Fail complains about a file: "tool: name: reason".
func Fail(t *proc.Task, name string, err error) {
	t.Errorf("%s: %s", File(name), vfs.Message(err))
}
