package diff

import (
	"testing"

	"github.com/paddock-sandbox/paddock/internal/sim/budget"
	"github.com/paddock-sandbox/paddock/internal/sim/command/commandtest"
)

func FuzzPatch(f *testing.F) {
	f.Add("1\n2\n3\n", "--- f\n+++ f\n@@ -1,3 +1,3 @@\n 1\n-2\n+x\n 3\n")
	f.Add("1\n2\n3\n", "*** f\n--- f\n***************\n*** 1,3 ****\n  1\n! 2\n  3\n--- 1,3 ----\n  1\n! x\n  3\n")
	f.Add("1\n2\n3\n", "2c2\n< 2\n---\n> x\n")
	f.Add("1\n", "diff --git a/f b/g\nrename from f\nrename to g\n")
	f.Fuzz(func(t *testing.T, file, patch string) {
		for _, args := range [][]string{{"patch", "-p0", "-i", "p"}, {"patch", "-R", "f", "p"}, {"patch", "-t", "-l", "f", "p"}} {
			commandtest.RunWithin(t, Commands(), commandtest.Case{Args: args, Files: map[string]string{"f": file, "p": patch}}, budget.Limits{Steps: 5_000_000})
		}
	})
}

func FuzzDiff(f *testing.F) {
	f.Add("1\n2\n3\n", "1\nx\n3")
	f.Add("a\n\n\nb", "b\n\na\n")
	f.Fuzz(func(t *testing.T, a, b string) {
		for _, args := range [][]string{{"diff", "-a", "a", "b"}, {"diff", "-aubB", "a", "b"}, {"diff", "-ay", "a", "b"}, {"diff", "-acw", "a", "b"}} {
			commandtest.RunWithin(t, Commands(), commandtest.Case{Args: args, Files: map[string]string{"a": a, "b": b}}, budget.Limits{Steps: 50_000_000})
		}
	})
}

func FuzzDiff3(f *testing.F) {
	f.Add("1\n2\n3\n", "1\n2\n3\n4\n", "0\n2\nx")
	f.Add("a\n", "", "b")
	f.Fuzz(func(t *testing.T, mine, old, yours string) {
		for _, args := range [][]string{{"diff3", "m", "o", "y"}, {"diff3", "-m", "m", "o", "y"}, {"diff3", "-e", "m", "o", "y"}, {"diff3", "-A", "m", "o", "y"}} {
			commandtest.RunWithin(t, Commands(), commandtest.Case{Args: args, Files: map[string]string{"m": mine, "o": old, "y": yours}}, budget.Limits{Steps: 5_000_000})
		}
	})
}
