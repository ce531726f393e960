package layout

import (
	"testing"

	"github.com/paddock-sandbox/paddock/internal/driver/sim/budget"
	"github.com/paddock-sandbox/paddock/internal/driver/sim/command/commandtest"
)

// fuzzed runs a tool within limits that make every run short.
func fuzzed(t *testing.T, stdin string, args ...string) {
	t.Helper()
	for _, arg := range args {
		for i := range len(arg) {
			if arg[i] == 0 {
				return // no argument has one
			}
		}
	}
	commandtest.RunWithin(t, Commands(), commandtest.Case{Args: args, Stdin: stdin}, budget.Limits{Steps: 100_000, Heap: 32 << 20, Record: 1 << 20})
}

func FuzzColumn(f *testing.F) {
	f.Add("1,-", "a b\nc d e\n")
	f.Add("0", "x")
	f.Fuzz(func(t *testing.T, columns, text string) {
		fuzzed(t, text, "column", "-t", "-R", columns, "-O", columns)
		fuzzed(t, text, "column", "-t", "-N", "a,b,c", "-i", "1", "-p", "2", "-r", "3")
		fuzzed(t, text, "column", "-J", "-N", columns)
		fuzzed(t, text, "column", "-c", "30")
		fuzzed(t, text, "colrm", "2", "4")
		fuzzed(t, text, "col", "-b")
	})
}

func FuzzPr(f *testing.F) {
	f.Add("-3a", "-n:3", "a\tb\n\fc")
	f.Add("-2", "-s,", "x\ny\nz")
	f.Fuzz(func(t *testing.T, one, two, text string) {
		fuzzed(t, text, "pr", "-t", one, two)
		fuzzed(t, text, "pr", "-l", "15", one, two)
	})
}
