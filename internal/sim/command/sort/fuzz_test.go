package sort

import (
	"testing"

	"github.com/paddock-sandbox/paddock/internal/sim/command/commandtest"
)

func FuzzSort(f *testing.F) {
	f.Add("2,2n", "b 2\na 10\n")
	f.Add("1.2b,3.0r", "x\n\x00y")
	f.Add("1V", "a1\na~\n.b")
	f.Fuzz(func(t *testing.T, key, text string) {
		commandtest.Fuzz(t, Commands(), text, "sort", "-k", key)
		commandtest.Fuzz(t, Commands(), text, "sort", "-c", "-k", key)
		commandtest.Fuzz(t, Commands(), text+text+text, "sort", "-u", "-k", key)
	})
}

func FuzzSortKinds(f *testing.F) {
	f.Add("1e5\n0x1p3\nnan\n-1K\nJan\n")
	f.Fuzz(func(t *testing.T, text string) {
		for _, o := range []string{"-n", "-g", "-h", "-M", "-V", "-R", "-df", "-i"} {
			commandtest.Fuzz(t, Commands(), text, "sort", o)
		}
		commandtest.Fuzz(t, Commands(), text, "tsort")
		commandtest.Fuzz(t, Commands(), text, "uniq", "-c", "-f1", "-i")
	})
}

func FuzzJoin(f *testing.F) {
	f.Add("1.1,2.2,0", "a 1\nb 2\n")
	f.Fuzz(func(t *testing.T, format, text string) {
		commandtest.Fuzz(t, Commands(), text, "join", "-o", format, "-", "-")
		commandtest.Fuzz(t, Commands(), text, "join", "-a1", "-o", format, "-", "/dev/null")
	})
}
