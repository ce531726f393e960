package number

import (
	"testing"

	"github.com/paddock-sandbox/paddock/internal/sim/command/commandtest"
)

func FuzzExpr(f *testing.F) {
	f.Add("(", "1", ")", "+", "2")
	f.Add("abc", ":", "a\\(b\\)", "|", "0")
	f.Fuzz(func(t *testing.T, a, b, c, d, e string) {
		commandtest.Fuzz(t, Commands(), "", "expr", a, b, c, d, e)
	})
}

func FuzzSeq(f *testing.F) {
	f.Add("%05.2f", "1", "0.5", "3")
	f.Add("%a", "-1e3", "1e2", "0x1p4")
	f.Fuzz(func(t *testing.T, format, a, b, c string) {
		commandtest.Fuzz(t, Commands(), "", "seq", "-f", format, "--", a, b, c)
		commandtest.Fuzz(t, Commands(), "", "seq", "-w", "--", a, b, c)
	})
}

func FuzzNumfmt(f *testing.F) {
	f.Add("%'010.3f|", "1.5K", "auto", "1-3,5")
	f.Add("%-5f", "-9Gi", "iec-i", "-")
	f.Fuzz(func(t *testing.T, format, value, unit, fields string) {
		commandtest.Fuzz(t, Commands(), value, "numfmt", "--format", format, "--from", unit, "--field", fields)
		commandtest.Fuzz(t, Commands(), value, "numfmt", "--to", unit, "--invalid=warn")
	})
}

func FuzzFactor(f *testing.F) {
	f.Add("18446744073709551557 12345678901234567890123")
	f.Fuzz(func(t *testing.T, text string) {
		commandtest.Fuzz(t, Commands(), text, "factor")
	})
}
