// Package column has the tools that arrange text in columns and on pages:
// column, pr, col and colrm.
package column

import (
	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/vfs"
)

// Commands lists the tools of this package.
func Commands() []command.Command {
	return []command.Command{
		{Name: "column", Run: runColumn},
		{Name: "colrm", Run: runColrm},
		{Name: "col", Run: runCol},
		{Name: "pr", Run: runPr},
	}
}

// reason gives the words for an error.
func reason(err error) string { return vfs.Message(err) }
