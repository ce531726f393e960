package number

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

func FuzzExpr(f *testing.F) {
	f.Add("(", "1", ")", "+", "2")
	f.Add("abc", ":", "a\\(b\\)", "|", "0")
	f.Fuzz(func(t *testing.T, a, b, c, d, e string) {
		fuzzed(t, "", "expr", a, b, c, d, e)
	})
}

func FuzzSeq(f *testing.F) {
	f.Add("%05.2f", "1", "0.5", "3")
	f.Add("%a", "-1e3", "1e2", "0x1p4")
	f.Fuzz(func(t *testing.T, format, a, b, c string) {
		fuzzed(t, "", "seq", "-f", format, "--", a, b, c)
		fuzzed(t, "", "seq", "-w", "--", a, b, c)
	})
}

func FuzzNumfmt(f *testing.F) {
	f.Add("%'010.3f|", "1.5K", "auto", "1-3,5")
	f.Add("%-5f", "-9Gi", "iec-i", "-")
	f.Fuzz(func(t *testing.T, format, value, unit, fields string) {
		fuzzed(t, value, "numfmt", "--format", format, "--from", unit, "--field", fields)
		fuzzed(t, value, "numfmt", "--to", unit, "--invalid=warn")
	})
}

func FuzzFactor(f *testing.F) {
	f.Add("18446744073709551557 12345678901234567890123")
	f.Fuzz(func(t *testing.T, text string) {
		fuzzed(t, text, "factor")
	})
}
