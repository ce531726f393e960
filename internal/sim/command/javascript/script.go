// Package javascript is JavaScript on a simulated computer: node, as far as its
// programs need no more than files, standard streams and other programs of the
// computer. The language is that of package engine, its library is written in
// JavaScript (directory lib), and both reach the world only through the task.
package javascript

import (
	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/proc"
	"github.com/paddock-sandbox/paddock/tool"
)

// Version is the version of node whose library this one follows.
const Version = "v20.0.0"

// Commands lists the programs. The tools are what `tools` is in JavaScript;
// nil is none.
func Commands(tools *tool.Set) []command.Command {
	lib := &library{compiled: map[string][]byte{}}
	return []command.Command{{
		Name: "node", Aliases: []string{"js", "js-exec"},
		Run: func(t *proc.Task) int { return run(t, tools, lib) },
	}}
}
