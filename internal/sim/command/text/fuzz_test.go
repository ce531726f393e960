package text

import (
	"strconv"
	"testing"

	"github.com/paddock-sandbox/paddock/internal/sim/command/commandtest"
)

func FuzzTr(f *testing.F) {
	f.Add("a-z", "A-Z", "hello")
	f.Add("[:upper:]", "[x*]", "ABC")
	f.Add("[=a=]\\101", "[b*010]", "aA")
	f.Fuzz(func(t *testing.T, one, two, text string) {
		commandtest.Fuzz(t, Commands(), text, "tr", one, two)
		commandtest.Fuzz(t, Commands(), text, "tr", "-cs", one, two)
		commandtest.Fuzz(t, Commands(), text, "tr", "-d", one)
	})
}

func FuzzCut(f *testing.F) {
	f.Add("1,3-5,7-", "a\tb\nc")
	f.Add("-2", "x")
	f.Fuzz(func(t *testing.T, list, text string) {
		commandtest.Fuzz(t, Commands(), text, "cut", "-f", list)
		commandtest.Fuzz(t, Commands(), text, "cut", "--complement", "-b", list)
	})
}

func FuzzTabs(f *testing.F) {
	f.Add("3,/5", "a\tb\n   c")
	f.Add("+4", "\t\t")
	f.Fuzz(func(t *testing.T, list, text string) {
		commandtest.Fuzz(t, Commands(), text, "expand", "-t", list)
		commandtest.Fuzz(t, Commands(), text, "unexpand", "-t", list)
	})
}

func FuzzText(f *testing.F) {
	f.Add("a b c\n\nd", uint16(20))
	f.Add("\xff\xfe\xc3", uint16(1))
	f.Fuzz(func(t *testing.T, text string, width uint16) {
		w := strconv.Itoa(int(width))
		for _, args := range [][]string{{"fmt", "-w", w}, {"fold", "-sw", w}, {"wc", "-lwmcL"}, {"cat", "-A"}, {"tac"}, {"rev"}, {"nl", "-ba", "-w", "3"}, {"head", "-c", w}, {"tail", "-n", w}, {"head", "-n", "-" + w}, {"paste", "-s"}} {
			commandtest.Fuzz(t, Commands(), text, args...)
		}
	})
}

func FuzzCsplit(f *testing.F) {
	f.Add("/b/+1", "{*}", "a\nb\nc\n")
	f.Add("2", "{3}", "x\ny\n")
	f.Fuzz(func(t *testing.T, pattern, repeat, text string) {
		commandtest.Fuzz(t, Commands(), text, "csplit", "-s", "-", pattern, repeat)
	})
}
