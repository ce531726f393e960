// Package sort holds the tools that put lines in an order or rely on one:
// sort, uniq, comm, join, tsort, look and shuf.
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
