// Package javascript is node on a simulated computer, for programs that need
// only files, standard streams and the computer's other programs. Package
// quickjs is the language; the library is written in JavaScript (directory
// lib). Both reach the world only through the task.
package javascript

import (
	"encoding/json"

	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
)

// Version is the version of node whose library this one follows.
const Version = "v20.0.0"

// A Caller calls a tool of the embedding Go program with arguments in JSON. It
// waits as the task, and runs caught for each signal that arrives meanwhile and
// that the task catches.
type Caller func(t *kernel.Task, name string, args json.RawMessage, caught func()) (json.RawMessage, error)

// Commands returns the programs. The object `tools` of JavaScript calls tools;
// there is none if it is nil.
func Commands(tools Caller) []command.Command {
	lib := &library{compiled: map[string][]byte{}}
	return []command.Command{{
		Name: "node", Aliases: []string{"js", "js-exec"},
		Run: func(t *kernel.Task) int { return run(t, tools, lib) },
	}}
}
