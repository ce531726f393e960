package kernel

import (
	"fmt"
	"path"
	"strings"

	"github.com/paddock-sandbox/paddock/internal/sim/quote"
	"github.com/paddock-sandbox/paddock/internal/sim/vfs"
)

// Name returns the program's name as messages have it.
func (t *Task) Name() string {
	if len(t.Args) == 0 {
		return ""
	}
	return path.Base(t.Args[0])
}

// Errorf writes "name: message" and a newline to standard error, after what
// was written to standard output before. In the locale C, quotes are ASCII.
func (t *Task) Errorf(format string, args ...any) {
	if t.out != nil && t.out.Buffered() > 0 {
		_ = t.Flush() // the end of the program tells of it
	}
	text := t.Name() + ": " + fmt.Sprintf(format, args...) + "\n"
	if strings.Contains(text, "‘") && t.Bytewise() {
		text = quote.ASCII(text)
	}
	_, _ = t.Write(2, []byte(text))
}

// Fail writes "name: what: reason" to standard error.
func (t *Task) Fail(what string, err error) { t.Errorf("%s: %s", what, vfs.Message(err)) }
