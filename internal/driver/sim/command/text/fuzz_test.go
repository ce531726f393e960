package text

import (
	"strconv"
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

func FuzzTr(f *testing.F) {
	f.Add("a-z", "A-Z", "hello")
	f.Add("[:upper:]", "[x*]", "ABC")
	f.Add("[=a=]\\101", "[b*010]", "aA")
	f.Fuzz(func(t *testing.T, one, two, text string) {
		fuzzed(t, text, "tr", one, two)
		fuzzed(t, text, "tr", "-cs", one, two)
		fuzzed(t, text, "tr", "-d", one)
	})
}

func FuzzCut(f *testing.F) {
	f.Add("1,3-5,7-", "a\tb\nc")
	f.Add("-2", "x")
	f.Fuzz(func(t *testing.T, list, text string) {
		fuzzed(t, text, "cut", "-f", list)
		fuzzed(t, text, "cut", "--complement", "-b", list)
	})
}

func FuzzTabs(f *testing.F) {
	f.Add("3,/5", "a\tb\n   c")
	f.Add("+4", "\t\t")
	f.Fuzz(func(t *testing.T, list, text string) {
		fuzzed(t, text, "expand", "-t", list)
		fuzzed(t, text, "unexpand", "-t", list)
	})
}

func FuzzText(f *testing.F) {
	f.Add("a b c\n\nd", uint16(20))
	f.Add("\xff\xfe\xc3", uint16(1))
	f.Fuzz(func(t *testing.T, text string, width uint16) {
		w := strconv.Itoa(int(width))
		for _, args := range [][]string{{"fmt", "-w", w}, {"fold", "-sw", w}, {"wc", "-lwmcL"}, {"cat", "-A"}, {"tac"}, {"rev"}, {"nl", "-ba", "-w", "3"}, {"head", "-c", w}, {"tail", "-n", w}, {"head", "-n", "-" + w}, {"paste", "-s"}} {
			fuzzed(t, text, args...)
		}
	})
}

func FuzzCsplit(f *testing.F) {
	f.Add("/b/+1", "{*}", "a\nb\nc\n")
	f.Add("2", "{3}", "x\ny\n")
	f.Fuzz(func(t *testing.T, pattern, repeat, text string) {
		fuzzed(t, text, "csplit", "-s", "-", pattern, repeat)
	})
}
