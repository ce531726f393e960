// Package date has the tools that print dates: date, cal and ncal.
package date

import "github.com/paddock-sandbox/paddock/internal/sim/command"

// Commands lists the tools of this package.
func Commands() []command.Command {
	return []command.Command{
		{Name: "date", Run: runDate},
		{Name: "cal", Aliases: []string{"ncal"}, Run: runCal},
	}
}
