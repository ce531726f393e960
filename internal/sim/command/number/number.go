// Package number has the tools that count and calculate: seq, factor, numfmt
// and expr.
package number

import "github.com/paddock-sandbox/paddock/internal/sim/command"

// Commands lists the tools of this package.
func Commands() []command.Command {
	return []command.Command{
		{Name: "seq", Run: runSeq},
		{Name: "expr", Run: runExpr},
		{Name: "factor", Run: runFactor},
		{Name: "numfmt", Run: runNumfmt},
	}
}
