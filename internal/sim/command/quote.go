package command

import (
	"strings"

	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
	"github.com/paddock-sandbox/paddock/internal/sim/quote"
	"github.com/paddock-sandbox/paddock/internal/sim/vfs"
)

// Quote puts text between the quotation marks of GNU messages: ‘text’.
func Quote(s string) string { return quote.Curly(s) }

// QuoteFile formats a file's name for the place before a colon in a message:
// unchanged, or quoted for the shell if the shell needs that.
func QuoteFile(s string) string {
	if strings.IndexByte(s, ':') >= 0 {
		return quote.Name(s)
	}
	return quote.Shell(s)
}

// QuoteAlways is QuoteFile with quotes in any case.
func QuoteAlways(s string) string { return quote.Name(s) }

// FailFile reports an error of a file: "tool: name: reason".
func FailFile(t *kernel.Task, name string, err error) {
	t.Errorf("%s: %s", QuoteFile(name), vfs.Message(err))
}
