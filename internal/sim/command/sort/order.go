// Package sort has the tools that sort lines or need sorted lines: sort, uniq,
// comm, join, tsort, look and shuf.
package sort

import "github.com/paddock-sandbox/paddock/internal/sim/command"

// Commands lists the tools of this package.
func Commands() []command.Command {
	return []command.Command{
		{Name: "sort", Run: runSort},
		{Name: "uniq", Run: runUniq},
		{Name: "comm", Run: runComm},
		{Name: "join", Run: runJoin},
		{Name: "tsort", Run: runTsort},
		{Name: "shuf", Run: runShuf},
		{Name: "look", Run: runLook},
	}
}
