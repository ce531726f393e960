package sed

import (
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock/internal/sim/budget"
	"github.com/paddock-sandbox/paddock/internal/sim/command/commandtest"
)

func FuzzScript(f *testing.F) {
	for _, s := range []string{":a;s/^/x/;ba", "$!N;P;D", "/a/,+2{s/\\(.\\)/\\U\\1\\n/2gpw out\n}", "y/ab\\n/\\x41\\\\c/;l 3", "a\\\nfoo\\", "0,/x/!{x;G;H;g}", "1~2i\\  x", "s/[/]/\\cA&/Ie", "#n\nr a\nR a\n=", "v 4.2;F;z;Q3", "{{}", "\\n\\nn,$c x", "W out\nw /dev/stdout\n//p"} {
		f.Add(s, "a\nb", false)
	}
	f.Fuzz(func(t *testing.T, script, stdin string, extended bool) {
		args := []string{"sed", "-n", "-e", script, "-", "a"}
		if extended {
			args = []string{"sed", "-E", "-i", script, "a"}
		}
		began := time.Now()
		commandtest.RunWithin(t, Commands(), commandtest.Case{Args: args, Stdin: stdin, Files: map[string]string{"a": stdin + "\nmore\n"}}, budget.Limits{Steps: 2_000_000, Output: 16 << 20, Heap: 64 << 20, Record: 1 << 20})
		if d := time.Since(began); d > 10*time.Second {
			t.Errorf("it took %v", d)
		}
	})
}

func TestLoopsEndByTheBudget(t *testing.T) {
	limits := budget.Limits{Steps: 5_000_000, Heap: 64 << 20, Record: 8 << 20, Output: 64 << 20, Disk: 64 << 20}
	for _, script := range []string{":a;ba", ":a;s/^/x/;ba", ":a;s/.*/&&/;ta", ":a;H;ba", ":a;G;h;ba", ":a;a x\nba", ":a;p;ba", ":a;w out\nba", ":a;s/x*/y/g;ba", "s/a/a\\na/;D", ":a;s/b/b/2;ba", ":a;r a\nba"} {
		r := commandtest.RunWithin(t, Commands(), commandtest.Case{Args: []string{"sed", script}, Stdin: "aab\n", Files: map[string]string{"a": "x\n"}}, limits)
		if r.Status == 0 {
			t.Errorf("%q ends by itself", script)
		}
	}
}
