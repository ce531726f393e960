package column

import (
	"testing"

	"github.com/paddock-sandbox/paddock/internal/sim/command/commandtest"
)

func FuzzColumn(f *testing.F) {
	f.Add("1,-", "a b\nc d e\n")
	f.Add("0", "x")
	f.Fuzz(func(t *testing.T, columns, text string) {
		commandtest.Fuzz(t, Commands(), text, "column", "-t", "-R", columns, "-O", columns)
		commandtest.Fuzz(t, Commands(), text, "column", "-t", "-N", "a,b,c", "-i", "1", "-p", "2", "-r", "3")
		commandtest.Fuzz(t, Commands(), text, "column", "-J", "-N", columns)
		commandtest.Fuzz(t, Commands(), text, "column", "-c", "30")
		commandtest.Fuzz(t, Commands(), text, "colrm", "2", "4")
		commandtest.Fuzz(t, Commands(), text, "col", "-b")
	})
}

func FuzzPr(f *testing.F) {
	f.Add("-3a", "-n:3", "a\tb\n\fc")
	f.Add("-2", "-s,", "x\ny\nz")
	f.Fuzz(func(t *testing.T, one, two, text string) {
		commandtest.Fuzz(t, Commands(), text, "pr", "-t", one, two)
		commandtest.Fuzz(t, Commands(), text, "pr", "-l", "15", one, two)
	})
}
