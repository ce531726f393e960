// Package calc has the calculators bc and dc: decimal numbers of any length and
// precision.
package calc

import "github.com/paddock-sandbox/paddock/internal/sim/command"

// Commands lists the tools of this package.
func Commands() []command.Command {
	return []command.Command{
		{Name: "bc", Run: runBC},
		{Name: "dc", Run: runDC},
	}
}
