package clock

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

func FuzzDate(f *testing.F) {
	f.Add("2024-01-15 +1 day", "%F %-5T%%")
	f.Add("@0", "%N%:z")
	f.Fuzz(func(t *testing.T, date, format string) {
		fuzzed(t, date, "date", "-f", "-", "+"+format)
		fuzzed(t, "", "cal", date)
	})
}
