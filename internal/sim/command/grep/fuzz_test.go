package grep

import (
	"strings"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock/internal/sim/budget"
	"github.com/paddock-sandbox/paddock/internal/sim/command/commandtest"
)

func FuzzArguments(f *testing.F) {
	f.Add("grep -n1 -A2\x00-e\x00a*", "a\nb\x00\xff\n")
	f.Add("grep -zoP (a)|b -C3 --color=always", "b\x00a\n")
	f.Add("grep -12x3n -m1 -- a - d", "")
	f.Add("rg -C1 -r $0x -U a\\n --json", "a\nb\n")
	f.Add("rg -g {a,b* -t py --vimgrep a .", "a")
	f.Add("grep -rc --include=[a-\x00-L", "x")
	f.Fuzz(func(t *testing.T, line, stdin string) {
		args := strings.FieldsFunc(line, func(r rune) bool { return r == ' ' || r == 0 })
		if len(args) == 0 || args[0] != "grep" && args[0] != "rg" {
			t.Skip("it is neither of them")
		}
		began := time.Now()
		commandtest.RunWithin(t, Commands(), commandtest.Case{Args: args, Stdin: stdin, Files: map[string]string{"a": stdin, "d/b": "a\nb\n", "d/.gitignore": line}}, budget.Limits{Steps: 10_000_000, Output: 16 << 20, Heap: 64 << 20})
		if d := time.Since(began); d > 10*time.Second {
			t.Errorf("it took %v", d)
		}
	})
}
