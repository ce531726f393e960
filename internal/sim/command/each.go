package command

import (
	"fmt"
	"strings"

	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
	"github.com/paddock-sandbox/paddock/internal/sim/vfs"
)

// InputNames returns the operands, or "-" for standard input if there are none.
func InputNames(operands []string) []string {
	if len(operands) == 0 {
		return []string{"-"}
	}
	return operands
}

// Delimiter returns the byte that ends a record: newline, or NUL with -z.
func Delimiter(a *Args) byte {
	if a.Has("z") {
		return 0
	}
	return '\n'
}

// ReadErrors are the messages of a tool for a file that it cannot open or read.
// Each is a format for the quoted name, or a text in place of the name; an
// empty one stands for the name itself.
type ReadErrors struct{ Open, Read string }

// EachFile opens the files one after the other and reports those that cannot be
// read. It returns the exit status: 1 if a file failed.
func EachFile(t *kernel.Task, names []string, do func(name string, r *Reader)) int {
	return ReadErrors{}.Each(t, names, do)
}

// Each is EachFile with the messages of w.
func (w ReadErrors) Each(t *kernel.Task, names []string, do func(name string, r *Reader)) int {
	status := 0
	for _, name := range names {
		if !w.One(t, name, do) {
			status = 1
		}
	}
	return status
}

// One is Each for a single file. It returns whether the file could be read.
func (w ReadErrors) One(t *kernel.Task, name string, do func(name string, r *Reader)) bool {
	r, err := OpenReader(t, name)
	if err != nil {
		ComplainFile(t, w.Open, name, err)
		return false
	}
	defer r.Close()
	do(name, r)
	if err := r.Err(); err != nil {
		ComplainFile(t, w.Read, name, err)
		return false
	}
	return true
}

// ComplainFile reports an error of a file with one message of ReadErrors.
func ComplainFile(t *kernel.Task, format, name string, err error) {
	switch {
	case format == "":
		FailFile(t, name, err)
	case !strings.Contains(format, "%"):
		t.Errorf("%s: %s", format, vfs.Message(err))
	case name == "-":
		t.Errorf("%s: %s", fmt.Sprintf(format, "'standard input'"), vfs.Message(err))
	default:
		t.Errorf("%s: %s", fmt.Sprintf(format, QuoteAlways(name)), vfs.Message(err))
	}
}
