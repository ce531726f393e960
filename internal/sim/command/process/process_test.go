package process

import (
	"slices"
	"testing"

	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/command/commandtest"
	"github.com/paddock-sandbox/paddock/internal/sim/command/text"
	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
	"github.com/paddock-sandbox/paddock/internal/sim/linux"
)

// programs are the tools under test, and some that they start.
func programs() []command.Command {
	return slices.Concat(Commands(), text.Commands(), []command.Command{
		{Name: "true", Run: func(*kernel.Task) int { return 0 }},
		{Name: "false", Run: func(*kernel.Task) int { return 1 }},
		{Name: "sleep", Run: func(t *kernel.Task) int {
			d, ok := duration(t.Args[1])
			if !ok || t.Sleep(d) != nil {
				return 1
			}
			return 0
		}},
		{Name: "deaf", Run: func(t *kernel.Task) int {
			t.On(linux.SIGTERM, kernel.Ignore)
			d, ok := duration(t.Args[1])
			if !ok || t.Sleep(d) != nil {
				return 1
			}
			return 0
		}},
	})
}

func cases(env []string, files map[string]string, all ...[]string) []commandtest.Case {
	list := make([]commandtest.Case, 0, len(all))
	for _, args := range all {
		list = append(list, commandtest.Case{Args: args, Stdin: "in\n", Files: files, Env: env, Stderr: true})
	}
	return list
}

func TestTestDecidesAsGNUs(t *testing.T) {
	files := map[string]string{"f": "x", "e": "", "d/": "", "l": "-> f", "b": "-> nowhere"}
	var all [][]string
	for _, args := range [][]string{
		{}, {""}, {"a"}, {"!"}, {"!", ""}, {"!", "a"}, {"-n", ""}, {"-n", "x"}, {"-z", ""}, {"-z", "x"}, {"a", "=", "a"}, {"a", "==", "b"}, {"a", "!=", "b"}, {"a", "<", "b"}, {"b", "<", "a"}, {"a", ">", "b"},
		{"1", "-eq", "1"}, {"1", "-eq", " 1 "}, {"01", "-eq", "1"}, {"+1", "-eq", "1"}, {"-1", "-lt", "0"}, {"5", "-gt", "3"}, {"x", "-eq", "1"}, {"", "-eq", "0"}, {"5", "-ge", "5"}, {"5", "-le", "4"}, {"5", "-ne", "4"},
		{"-e", "f"}, {"-e", "b"}, {"-L", "b"}, {"-h", "l"}, {"-f", "f"}, {"-f", "l"}, {"-f", "d"}, {"-d", "d"}, {"-s", "e"}, {"-s", "f"}, {"-r", "f"}, {"-w", "f"}, {"-x", "f"}, {"-x", "d"}, {"-p", "f"}, {"-S", "f"}, {"-b", "f"}, {"-c", "/dev/null"}, {"-c", "f"}, {"-u", "f"}, {"-g", "f"}, {"-k", "/tmp"}, {"-O", "f"}, {"-G", "f"}, {"-t", "0"}, {"-t", "99"}, {"-t", "x"},
		{"f", "-ef", "l"}, {"f", "-ef", "e"}, {"f", "-nt", "nope"}, {"nope", "-nt", "f"}, {"nope", "-ot", "f"},
		{"a", "-a", "b"}, {"a", "-a", ""}, {"", "-o", "b"}, {"", "-o", ""}, {"!", "a", "=", "a"}, {"(", "a", ")"}, {"(", "a", "=", "a", ")"}, {"(", "!", "a", ")"}, {"!", "(", "a", ")"},
		{"a", "=", "a", "-a", "b", "=", "b"}, {"a", "=", "b", "-o", "b", "=", "b"}, {"a", "=", "a", "-a", "b", "=", "c", "-o", "x"}, {"(", "a", "=", "b", "-o", "x", ")", "-a", "y"},
		{"a", "b"}, {"a", "b", "c"}, {"a", "=", "b", "c", "d"}, {"-n", "a", "b", "c", "d", "e"}, {"(", "a", "=", "a", ")", "x"}, {"-a"}, {"-f"}, {"="}, {"-n"}, {"!", "!"}, {"!", "!", "!"}, {"-f", "=", "-f"}, {"(", ")"}, {"(", "x", ")", "-o", ""}, {"99999999999999999999", "-gt", "1"},
	} {
		all = append(all, append([]string{"test"}, args...))
	}
	all = append(all, []string{"[", "a", "]"}, []string{"[", "a"}, []string{"["}, []string{"[", "]"}, []string{"[", "1", "-eq", "2", "]"})
	commandtest.Compare(t, programs(), cases(nil, files, all...))
}

func TestEnvironmentsAreAsGNUs(t *testing.T) {
	commandtest.Compare(t, programs(), cases([]string{"A=1", "B=x=y"}, nil,
		[]string{"env", "-i"}, []string{"env", "-i", "X=1", "Y=2"}, []string{"env", "-i", "X=1", "X=2"}, []string{"env", "-i", "/usr/bin/env"}, []string{"env", "-u", "A", "printenv", "A"}, []string{"env", "A=5", "printenv", "A", "B"},
		[]string{"env", "nope"}, []string{"env", "-u"}, []string{"env", "-u", "A=b"}, []string{"env", "-C", "/", "ls-is-missing"}, []string{"env", "-C", "nope", "true"}, []string{"env", "-C", "/"}, []string{"env", "-0", "-i", "Q=1"}, []string{"env", "--zzz"},
		[]string{"env", "-S", "A=9 printenv A"}, []string{"env", "-S", `printenv "A"`}, []string{"env", "-S", `-i X='a b' /usr/bin/printenv X`}, []string{"env", "-S", `A=${B} printenv A`}, []string{"env", "-S", "'x"}, []string{"env", "-S", `a\q`}, []string{"env", "-", "Z=1"}, []string{"env", "false"}, []string{"env", "cat"},
		[]string{"printenv", "A"}, []string{"printenv", "NOPE"}, []string{"printenv", "A", "NOPE", "B"}, []string{"printenv", "-0", "A"}, []string{"printenv", "A=1"}, []string{"printenv", "--zzz"},
	))
}

func TestProgramsAreStartedAsGNUs(t *testing.T) {
	commandtest.Compare(t, programs(), cases(nil, map[string]string{"plain": "x"},
		[]string{"timeout", "5", "true"}, []string{"timeout", "5", "false"}, []string{"timeout", "0.05", "sleep", "9"}, []string{"timeout", "-s", "KILL", "0.05", "sleep", "9"}, []string{"timeout", "--preserve-status", "0.05", "sleep", "9"},
		[]string{"timeout", "-s", "INT", "--preserve-status", "0.05s", "sleep", "9"}, []string{"timeout", "x", "true"}, []string{"timeout", "-1", "true"}, []string{"timeout", "5"}, []string{"timeout", "5", "nope"}, []string{"timeout", "5", "./plain"}, []string{"timeout", "-s", "ZZ", "5", "true"}, []string{"timeout", "-k", "x", "5", "true"}, []string{"timeout", "-v", "0.05", "sleep", "9"}, []string{"timeout", "--foreground", "0.05", "sleep", "9"}, []string{"timeout", "0", "true"}, []string{"timeout", "1m", "cat"},
		[]string{"nice"}, []string{"nice", "-n", "5", "true"}, []string{"nice", "-n", "x", "true"}, []string{"nice", "-n", "5"}, []string{"nice", "nope"}, []string{"nice", "-5", "false"}, []string{"nohup", "false"}, []string{"nohup", "nope"}, []string{"nohup"},
		[]string{"time", "-f", "%C %x", "false"}, []string{"time", "-f", `a\tb%%`, "true"}, []string{"time", "-q", "-f", "%x", "false"}, []string{"setsid", "-w", "false"}, []string{"setsid"},
		[]string{"which", "nope"}, []string{"which"}, []string{"which", "-z"}, []string{"which", "./plain"},
		[]string{"tty"}, []string{"tty", "-s"}, []string{"stty"}, []string{"stty", "size"}, []string{"mountpoint", "nope"}, []string{"mountpoint", "plain"}, []string{"getconf", "PAGE_SIZE"}, []string{"getconf", "NOPE"}, []string{"getconf"}, []string{"arch"}, []string{"arch", "x"}, []string{"uname"}, []string{"uname", "-sm"}, []string{"uname", "-o"}, []string{"uname", "-x"}, []string{"uname", "a"}, []string{"logname"}, []string{"users"}, []string{"nproc", "--ignore=x"}, []string{"nproc", "--ignore=1000"}, []string{"id", "nope"}, []string{"id", "-ug"}, []string{"id", "-n"}, []string{"whoami", "x"}, []string{"groups", "nope"},
		[]string{"kill", "-l", "9"}, []string{"kill", "-l", "TERM"}, []string{"kill", "-l"}, []string{"kill", "999999"}, []string{"kill", "x"}, []string{"killall", "nope-at-all"}, []string{"pgrep", "nope-at-all"}, []string{"pidof", "nope-at-all"}, []string{"locale"}, []string{"locale", "charmap"},
	))
}

func TestADeafProgramIsKilledLater(t *testing.T) {
	r := commandtest.Run(t, programs(), commandtest.Case{Args: []string{"timeout", "-k", "0.05", "0.05", "deaf", "60"}})
	if r.Status != 137 {
		t.Errorf("status %d, want 137", r.Status)
	}
}
