// Package text holds the tools that show, cut, join and translate text by
// lines and bytes, as those of GNU's coreutils do.
package text

import (
	"fmt"
	"strings"

	"github.com/paddock-sandbox/paddock/internal/driver/sim/command"
	"github.com/paddock-sandbox/paddock/internal/driver/sim/command/operand"
	"github.com/paddock-sandbox/paddock/internal/driver/sim/command/stream"
	"github.com/paddock-sandbox/paddock/internal/driver/sim/proc"
	"github.com/paddock-sandbox/paddock/internal/driver/sim/vfs"
)

// Commands lists the tools of this package.
func Commands() []command.Command {
	return []command.Command{
		{Name: "cat", Run: runCat},
		{Name: "head", Run: runHead},
		{Name: "tail", Run: runTail},
		{Name: "wc", Run: runWC},
		{Name: "cut", Run: runCut},
		{Name: "paste", Run: runPaste},
		{Name: "tr", Run: runTr},
		{Name: "tee", Run: runTee},
	}
}

// orStdin is the operands, or standard input where there are none.
func orStdin(operands []string) []string {
	if len(operands) == 0 {
		return []string{"-"}
	}
	return operands
}

// words are how a tool complains about a file that it cannot open or read: a
// format for the quoted name, or empty for the name as it is.
type words struct{ open, read string }

// each opens each of the files in turn, and complains about those that cannot
// be read. It gives the status.
func each(t *proc.Task, names []string, do func(name string, r *stream.Reader)) int {
	return words{}.each(t, names, do)
}

func (w words) each(t *proc.Task, names []string, do func(name string, r *stream.Reader)) int {
	status := 0
	for _, name := range names {
		if !w.one(t, name, do) {
			status = 1
		}
	}
	return status
}

// one is each of a single file.
func (w words) one(t *proc.Task, name string, do func(name string, r *stream.Reader)) bool {
	r, err := stream.Open(t, name)
	if err != nil {
		complain(t, w.open, name, err)
		return false
	}
	defer r.Close()
	do(name, r)
	if err := r.Err(); err != nil {
		complain(t, w.read, name, err)
		return false
	}
	return true
}

func complain(t *proc.Task, format, name string, err error) {
	if format == "" {
		operand.Fail(t, name, err)
		return
	}
	if name == "-" {
		name = "standard input"
	}
	if !strings.Contains(format, "%") {
		t.Errorf("%s: %s", format, vfs.Message(err))
		return
	}
	t.Errorf("%s: %s", fmt.Sprintf(format, operand.Always(name)), vfs.Message(err))
}

// delimiter is the end of a record: newline, or NUL where -z says so.
func delimiter(a *command.Args) byte {
	if a.Has("z") {
		return 0
	}
	return '\n'
}

// extra complains about the first of too many operands.
func extra(t *proc.Task, s *command.Spec, operands []string, most int) int {
	return s.Usage(t, "extra operand %s", operand.Quote(operands[most]))
}

// reason gives the words for an error.
func reason(err error) string { return vfs.Message(err) }
