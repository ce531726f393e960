// Package grep has grep, egrep and fgrep of GNU.
//
// A file is searched in large pieces, and only lines that are selected are
// looked at one by one.
package grep

import (
	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/command/ripgrep"
	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
)

// Commands lists the tools of this package.
func Commands() []command.Command {
	return append([]command.Command{
		{Name: "grep", Run: func(t *kernel.Task) int { return run(t, "") }},
		{Name: "egrep", Run: func(t *kernel.Task) int { return run(t, "E") }},
		{Name: "fgrep", Run: func(t *kernel.Task) int { return run(t, "F") }},
	}, ripgrep.Commands()...)
}

// Statuses besides 0, which is that something was selected.
const (
	nothing = 1
	trouble = 2
)

// run is grep with the syntax of one of its letters, or the usual one.
func run(t *kernel.Task, syntax string) int {
	if syntax != "" {
		// They are scripts that call grep, which then speaks.
		t.Args = append([]string{"grep"}, t.Args[1:]...)
	}
	o, status, ok := parse(t, syntax)
	if !ok {
		return status
	}
	re, status := compile(t, o)
	if status != 0 {
		return status
	}
	if (o.maxCount == 0 || o.hopeless()) && !o.filesWithout {
		return nothing
	}
	s := newSearch(t, o, re)
	defer s.close()
	return s.all()
}

// hopeless says whether no line can be selected.
func (o *options) hopeless() bool {
	if o.invert {
		return len(o.patterns) == 1 && o.patterns[0] == "" && !o.word && !o.line
	}
	return len(o.patterns) == 0
}
