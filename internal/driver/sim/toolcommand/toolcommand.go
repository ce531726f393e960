// Package toolcommand offers functions of the embedding Go program as commands of a simulated computer.
// The first word of a function's name is a program. The program "tools" lists and describes all
// functions.
package toolcommand

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/command/javascript"
	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
	"github.com/paddock-sandbox/paddock/internal/sim/linux"
	"github.com/paddock-sandbox/paddock/tool"
)

// Statuses, as package tool says.
const (
	refused = 1
	misused = 2
)

// Commands lists the programs; a nil set has none.
func Commands(set *tool.Set) []command.Command {
	if set == nil {
		return nil
	}
	list := []command.Command{{Name: "tools", Run: func(t *kernel.Task) int { return describe(t, set) }}}
	for _, name := range set.Commands() {
		list = append(list, command.Command{Name: name, Run: func(t *kernel.Task) int { return run(t, set) }})
	}
	return list
}

// run calls the tool that the command line names.
func run(t *kernel.Task, set *tool.Set) int {
	words := append([]string{t.Name()}, t.Args[1:]...)
	x, rest, err := set.Command(words)
	if errors.Is(err, tool.HelpWanted) {
		return print(t, set.Help(words[:len(words)-1]...)) //nolint:forbidigo // a function of this package
	}
	if err != nil {
		t.Errorf("%v", err)
		_, _ = t.Write(2, []byte(set.Help(words[0])))
		return misused
	}
	args, err := x.Arguments(rest, t.In())
	if errors.Is(err, tool.HelpWanted) {
		return print(t, x.Help()) //nolint:forbidigo // a function of this package
	}
	if err != nil {
		t.Errorf("%v", err)
		_, _ = t.Write(2, []byte("Try '"+strings.Join(x.Segments(), " ")+" --help' for more information.\n"))
		return misused
	}
	return call(t, set, x.Name(), args)
}

func call(t *kernel.Task, set *tool.Set, name string, args json.RawMessage) int {
	result, err := Call(t, set, name, args, nil)
	if err != nil {
		t.Errorf("%v", err)
		if errors.Is(err, paddock.Invalid) || errors.Is(err, paddock.NotFound) {
			return misused
		}
		return refused
	}
	return print(t, string(result)) //nolint:forbidigo // a function of this package
}

func print(t *kernel.Task, s string) int {
	if s != "" && !strings.HasSuffix(s, "\n") {
		s += "\n"
	}
	if _, err := t.Out().WriteString(s); err != nil {
		return 1
	}
	return 0
}

// Caller returns what JavaScript calls tools by, or nil for a nil set.
func Caller(set *tool.Set) javascript.Caller {
	if set == nil {
		return nil
	}
	return func(t *kernel.Task, name string, args json.RawMessage, caught func()) (json.RawMessage, error) {
		return Call(t, set, name, args, caught)
	}
}

// Call calls a tool in the name of a task. The tool's function runs beside the
// task, which can be ended meanwhile: the function's context is done then.
// Caught is called when a signal arrives that the task catches.
func Call(t *kernel.Task, set *tool.Set, name string, args json.RawMessage, caught func()) (json.RawMessage, error) {
	t.ToolCall()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var result json.RawMessage
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		result, err = set.Call(ctx, name, args)
	}()
	for {
		switch e := t.Await(done, time.Time{}); {
		case e == nil:
			t.Bound("string", int64(len(result)), t.K.Limits.String)
			return result, err
		case e == linux.EINTR && caught != nil:
			caught()
		case e == linux.EINTR:
			t.Caught() // it is for nobody
		default:
			return nil, e
		}
	}
}

// describe is the program tools.
func describe(t *kernel.Task, set *tool.Set) int {
	spec := &command.Spec{
		Name: "tools", Synopsis: "[list [WORD]... | describe [TOOL] | prompt | call TOOL [JSON]]", Exit: misused, Ordered: true,
		About: "Tell which tools there are, each of which is a command of its own, and call one with arguments in JSON.",
	}
	a, status, ok := spec.Parse(t)
	if !ok {
		return status
	}
	verb, rest := "list", []string(nil)
	if len(a.Operands) > 0 {
		verb, rest = a.Operands[0], a.Operands[1:]
	}
	switch {
	case verb == "list":
		return print(t, set.Help(rest...)) //nolint:forbidigo // a function of this package
	case verb == "prompt" && len(rest) == 0:
		return print(t, set.Prompt()) //nolint:forbidigo // a function of this package
	case verb == "describe" && len(rest) <= 1:
		return definitions(t, set, rest)
	case verb == "call" && (len(rest) == 1 || len(rest) == 2):
		args := json.RawMessage("{}")
		if len(rest) == 2 && rest[1] == "-" {
			b, err := command.ReadAll(t, "-")
			if err != nil {
				t.Fail("standard input", err)
				return misused
			}
			args = b
		} else if len(rest) == 2 {
			args = json.RawMessage(rest[1])
		}
		return call(t, set, rest[0], args)
	}
	return spec.Usage(t, "what is '%s'?", strings.Join(a.Operands, " "))
}

// definitions prints tools as interfaces of models take them.
func definitions(t *kernel.Task, set *tool.Set, names []string) int {
	list := set.Describe()
	var v any = list
	if len(names) == 1 {
		v = nil
		for _, d := range list {
			if full, err := tool.FromAgentName(d.Name); d.Name == names[0] || err == nil && full == strings.ReplaceAll(names[0], ".", "/") {
				v = d
			}
		}
		if v == nil {
			t.Errorf("%s: no such tool", names[0])
			return misused
		}
	}
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		t.Errorf("%v", err)
		return refused
	}
	fmt.Fprintf(t.Out(), "%s\n", b)
	return 0
}
