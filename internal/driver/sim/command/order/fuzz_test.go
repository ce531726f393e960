package order

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

func FuzzSort(f *testing.F) {
	f.Add("2,2n", "b 2\na 10\n")
	f.Add("1.2b,3.0r", "x\n\x00y")
	f.Add("1V", "a1\na~\n.b")
	f.Fuzz(func(t *testing.T, key, text string) {
		fuzzed(t, text, "sort", "-k", key)
		fuzzed(t, text, "sort", "-c", "-k", key)
		fuzzed(t, text+text+text, "sort", "-u", "-k", key)
	})
}

func FuzzSortKinds(f *testing.F) {
	f.Add("1e5\n0x1p3\nnan\n-1K\nJan\n")
	f.Fuzz(func(t *testing.T, text string) {
		for _, o := range []string{"-n", "-g", "-h", "-M", "-V", "-R", "-df", "-i"} {
			fuzzed(t, text, "sort", o)
		}
		fuzzed(t, text, "tsort")
		fuzzed(t, text, "uniq", "-c", "-f1", "-i")
	})
}

func FuzzJoin(f *testing.F) {
	f.Add("1.1,2.2,0", "a 1\nb 2\n")
	f.Fuzz(func(t *testing.T, format, text string) {
		fuzzed(t, text, "join", "-o", format, "-", "-")
		fuzzed(t, text, "join", "-a1", "-o", format, "-", "/dev/null")
	})
}
