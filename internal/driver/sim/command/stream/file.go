package stream

import (
	"fmt"
	"strings"

	"github.com/paddock-sandbox/paddock/internal/driver/sim/command"
	"github.com/paddock-sandbox/paddock/internal/driver/sim/command/operand"
	"github.com/paddock-sandbox/paddock/internal/driver/sim/proc"
	"github.com/paddock-sandbox/paddock/internal/driver/sim/vfs"
)

// Names is a tool's operands, or standard input where there are none.
func Names(operands []string) []string {
	if len(operands) == 0 {
		return []string{"-"}
	}
	return operands
}

// Delimiter is the end of a record: newline, or NUL where -z says so.
func Delimiter(a *command.Args) byte {
	if a.Has("z") {
		return 0
	}
	return '\n'
}

// Words are how a tool complains about a file that it cannot open or read: a
// format for the quoted name, or what stands in place of the name, or empty
// for the name as it is.
type Words struct{ Open, Read string }

// Each opens each of the files in turn, and complains about those that cannot
// be read. It gives the status: 1 if there was one.
func Each(t *proc.Task, names []string, do func(name string, r *Reader)) int {
	return Words{}.Each(t, names, do)
}

// Each is the function of that name, with other words.
func (w Words) Each(t *proc.Task, names []string, do func(name string, r *Reader)) int {
	status := 0
	for _, name := range names {
		if !w.One(t, name, do) {
			status = 1
		}
	}
	return status
}

// One is Each of a single file, and tells whether it could be read.
func (w Words) One(t *proc.Task, name string, do func(name string, r *Reader)) bool {
	r, err := Open(t, name)
	if err != nil {
		Complain(t, w.Open, name, err)
		return false
	}
	defer r.Close()
	do(name, r)
	if err := r.Err(); err != nil {
		Complain(t, w.Read, name, err)
		return false
	}
	return true
}

// Complain complains about a file in the given words.
func Complain(t *proc.Task, format, name string, err error) {
	switch {
	case format == "":
		operand.Fail(t, name, err)
	case !strings.Contains(format, "%"):
		t.Errorf("%s: %s", format, vfs.Message(err))
	case name == "-":
		t.Errorf("%s: %s", fmt.Sprintf(format, "'standard input'"), vfs.Message(err))
	default:
		t.Errorf("%s: %s", fmt.Sprintf(format, operand.Always(name)), vfs.Message(err))
	}
}
