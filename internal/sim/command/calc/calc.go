// Package calc holds the desk calculators, bc and dc: decimal numbers of any
// length, with as many digits behind the point as a program asks for.
package calc

import "github.com/paddock-sandbox/paddock/internal/sim/command"

// Commands lists the tools of this package.
func Commands() []command.Command {
	return []command.Command{
		{Name: "bc", Run: runBC},
		{Name: "dc", Run: runDC},
	}
}
