package process

import (
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/command/commandtest"
	"github.com/paddock-sandbox/paddock/internal/sim/shell"
)

// What is right here is by the manual of GNU parallel (parallel(1), its
// options and examples); the tool itself is seldom installed.
func TestParallelDoesWhatItsManualSays(t *testing.T) {
	with := append(Commands(), command.Command{Name: "bash", Aliases: []string{"sh"}, Run: shell.Program})
	for _, c := range []struct {
		args   string // cut at "|"
		stdin  string
		out    string
		status int
	}{
		{"-k|echo|:::|1|2|:::|a|b", "", "1 a\n1 b\n2 a\n2 b\n", 0},
		{"-k|echo|{2}-{1}|:::|a|b|:::+|1|2|3", "", "1-a\n2-b\n", 0},
		{"-k|--link|echo|:::|1|2|3|:::|a|b", "", "1 a\n2 b\n3 a\n", 0},
		{"-k|echo", "x\ny z\n", "x\ny z\n", 0},
		{"-k", "echo x; echo y\necho z\n", "x\ny\nz\n", 0},
		{"-k|echo|::::|f", "", "1\n2\n", 0},
		{"-k|-a|f|echo|v", "", "v 1\nv 2\n", 0},
		{"-0|-k|echo", "a\nb\x00c\x00", "a\nb\nc\n", 0},
		{"-d|,|-k|echo", "a,b", "a\nb\n", 0},
		{"-k|--colsep|,|echo|{2} {1}", "a,b\nc , d\n", "b a\nd c\n", 0},
		{"--dry-run|echo|{} {.} {/} {//} {/.} {#}|:::|d/c.txt", "", "echo d/c.txt d/c c.txt d c 1\n", 0},
		{"--dry-run|echo|:::|a b|it's|", "", "echo 'a b'\necho 'it'\"'\"'s'\necho ''\n", 0},
		{"-N|3|-k|echo|{3}{1}", "1\n2\n3\n4\n", "31\n4\n", 0},
		{"-n|2|-k|echo|p{}s|:::|a|b|c", "", "pa bs\npcs\n", 0},
		{"-X|-j1|echo|p{}s|:::|a|b", "", "pas pbs\n", 0},
		{"-m|-j2|-k|echo", "1\n2\n3\n4\n", "1 2\n3 4\n", 0},
		{"--xargs|echo", "1\n2\n3\n", "1 2 3\n", 0},
		{"-L|2|-k|echo", "1\n2\n3\n", "1 2\n3\n", 0},
		{"-n0|-k|echo|x|:::|1|2", "", "x\nx\n", 0},
		{"-I|@|-k|echo|@ {}|:::|1", "", "1 {}\n", 0},
		{"--header|:|-k|echo|{b}{a}|:::|a|1|:::|b|2", "", "21\n", 0},
		{"--tag|-k|echo|hi|:::|1|2", "", "1\thi 1\n2\thi 2\n", 0},
		{"--tagstring|<{#}>|-k|echo|:::|x", "", "<1>\tx\n", 0},
		{"-q|echo|a  b|:::|$x", "", "a  b $x\n", 0},
		{"-v|echo|:::|1", "", "echo 1\n1\n", 0},
		{"-j1|--lb|echo|:::|1|2", "", "1\n2\n", 0},
		{"-j1|-u|echo|:::|1|2", "", "1\n2\n", 0},
		{"-r|-k|echo|v", "a\n  \nb\n", "v a\nv b\n", 0},
		{"exit|:::|0|1|2|0", "", "", 2},
		{"false|;|exit 1|{}|:::|" + strings.Repeat("1|", 150), "", "", 101},
		{"-j1|--halt|now,fail=1|echo {}; exit {}|:::|0|3|4", "", "0\n3\n", 3},
		{"-j1|--halt|soon,success=1|exit|:::|1|0|5", "", "", 0},
		{"-k|--pipe|-N|2|while read x; do printf $x; done; echo", "1\n2\n3\n", "12\n3\n", 0},
		{"-k|--pipe|--block|4|while read x; do printf $x; done; echo", "1\n2\n3\n", "12\n3\n", 0},
		{"--timeout|0.01|while :; do :; done|#|:::|1", "", "", 1},
		{"-j1|--retries|3|echo x >> log; false|#|:::|1", "", "", 1},
		{"--will-cite|--no-notice|--bar|-j50%|echo|:::|1", "", "1\n", 0},
		{"--no-such|echo", "", "", 255},
		{"-j|x|echo|:::|1", "", "", 255},
		{"echo|::::|none", "", "", 255},
	} {
		t.Run(strings.ReplaceAll(c.args, "/", "_"), func(t *testing.T) {
			t.Parallel()
			r := commandtest.Run(t, with, commandtest.Case{Args: append([]string{"parallel"}, strings.Split(c.args, "|")...), Stdin: c.stdin, Files: map[string]string{"f": "1\n2\n"}})
			if r.Stdout != c.out || r.Status != c.status {
				t.Errorf("%q: status %d, %q, %q; want %d, %q", c.args, r.Status, r.Stdout, r.Stderr, c.status, c.out)
			}
		})
	}
}

func TestParallelWritesItsFiles(t *testing.T) {
	with := append(Commands(), command.Command{Name: "bash", Run: shell.Program})
	r := commandtest.Run(t, with, commandtest.Case{
		Args: []string{"parallel", "-k", "--joblog", "log", "--results", "out", "echo {}; exit {2}", ":::", "a", ":::", "0", "7"},
		Look: []string{"log", "out/1/a/2/0/stdout", "out/1/a/2/7/stdout"},
	})
	lines := strings.Split(r.Files["log"], "\n")
	if r.Status != 1 || len(lines) != 4 || lines[0] != "Seq\tHost\tStarttime\tJobRuntime\tSend\tReceive\tExitval\tSignal\tCommand" {
		t.Fatalf("status %d, log %q, %q", r.Status, r.Files["log"], r.Stderr)
	}
	if r.Files["out/1/a/2/0/stdout"] != "a 0\n" || r.Files["out/1/a/2/7/stdout"] != "a 7\n" {
		t.Errorf("results: %q", r.Files)
	}
}

func FuzzParallel(f *testing.F) {
	f.Add("a b\nc\n", "echo {1} {/.} {-1}", "[ ,]")
	f.Add("\x00\n", "{}{#}{%}{//}", "(a|b)*")
	with := append(Commands(), command.Command{Name: "bash", Run: shell.Program})
	f.Fuzz(func(t *testing.T, in, cmd, sep string) {
		commandtest.Fuzz(t, with, in, "parallel", "--dry-run", "--colsep", sep, cmd)
		commandtest.Fuzz(t, with, in, "parallel", "--dry-run", "-X", "-j3", cmd)
	})
}
