package process

import (
	"regexp"
	"testing"

	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/command/commandtest"
	"github.com/paddock-sandbox/paddock/internal/sim/shell"
)

// What is right is by the manual pages of moreutils and util-linux.
func TestSmallWrappersDoWhatTheirManualsSay(t *testing.T) {
	with := append(Commands(), command.Command{Name: "bash", Aliases: []string{"sh"}, Run: shell.Program})
	for _, c := range []struct {
		args   []string
		stdin  string
		out    string // a regular expression
		status int
	}{
		{[]string{"ifne", "bash", "-c", "read x; echo got $x"}, "in\n", "^got in\n$", 0},
		{[]string{"ifne", "bash", "-c", "echo never"}, "", "^$", 0},
		{[]string{"ifne", "-n", "bash", "-c", "echo empty"}, "", "^empty\n$", 0},
		{[]string{"ifne", "-n", "bash", "-c", "echo empty"}, "in\n", "^in\n$", 0},
		{[]string{"ifne", "bash", "-c", "exit 3"}, "in\n", "^$", 3},
		{[]string{"chronic", "bash", "-c", "echo a; echo b >&2"}, "", "^$", 0},
		{[]string{"chronic", "bash", "-c", "echo a; exit 3"}, "", "^a\n$", 3},
		{[]string{"chronic", "-e", "bash", "-c", "echo a; echo b >&2"}, "", "^a\n$", 0},
		{[]string{"chronic", "-v", "bash", "-c", "echo a; exit 2"}, "", "^STDOUT:\na\n\nSTDERR:\n\nRETVAL: 2\n$", 2},
		{[]string{"ts", "-s"}, "a\nb\n", "^00:00:0. a\n00:00:0. b\n$", 0},
		{[]string{"ts", "-i", "%.S"}, "a\n", `^0\d\.\d{6} a\n$`, 0},
		{[]string{"ts", "%Y"}, "a", `^\d{4} a\n$`, 0},
		{[]string{"ts"}, "x\n", `^[A-Z][a-z]{2} \d\d \d\d:\d\d:\d\d x\n$`, 0},
		{[]string{"uuidgen"}, "", `^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}\n$`, 0},
		{[]string{"uuidgen", "-r"}, "", `^[0-9a-f]{8}-[0-9a-f]{4}-4`, 0},
		{[]string{"uuidgen", "-t"}, "", "^$", 1},
	} {
		r := commandtest.Run(t, with, commandtest.Case{Args: c.args, Stdin: c.stdin})
		if ok, err := regexp.MatchString(c.out, r.Stdout); err != nil || !ok || r.Status != c.status {
			t.Errorf("%q: status %d, %q, %q; want %d, %s", c.args, r.Status, r.Stdout, r.Stderr, c.status, c.out)
		}
	}
}
