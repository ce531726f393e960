package text

import (
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock/internal/sim/command/commandtest"
)

// What is right is by the manual pages of moreutils, and of less and more for
// an output that is no terminal.
func TestSmallToolsDoWhatTheirManualsSay(t *testing.T) {
	files := map[string]string{"f": "a\nb\nc\nb\n", "g": "b\nd\n", "bad": "x\ny\xff\n", "good": "é\n", "d/": ""}
	for _, c := range []struct {
		args, stdin, out string
		status           int
	}{
		{"combine f and g", "", "b\nb\n", 0},
		{"combine f not g", "", "a\nc\n", 0},
		{"combine f or g", "", "a\nb\nc\nb\nb\nd\n", 0},
		{"combine f xor g", "", "a\nc\nd\n", 0},
		{"combine - and g", "d\ne\n", "d\n", 0},
		{"combine f with g", "", "", 1},
		{"combine none and g", "", "", 1},
		{"isutf8 good", "", "", 0},
		{"isutf8 -q bad", "", "", 1},
		{"isutf8 -l good bad", "", "bad\n", 1},
		{"isutf8 -i good bad", "", "good\n", 1},
		{"isutf8", "\xe9\n", "", 1},
		{"less f", "", "a\nb\nc\nb\n", 0},
		{"less -NSR +G f g", "", "a\nb\nc\nb\nb\nd\n", 0},
		{"less", "in\n", "in\n", 0},
		{"less d", "", "", 1},
		{"more f", "", "a\nb\nc\nb\n", 0},
		{"more g g", "", "::::::::::::::\ng\n::::::::::::::\nb\nd\n::::::::::::::\ng\n::::::::::::::\nb\nd\n", 0},
		{"more none", "", "", 1},
	} {
		r := commandtest.Run(t, Commands(), commandtest.Case{Args: strings.Fields(c.args), Stdin: c.stdin, Files: files})
		wrong := r.Stdout != c.out
		if c.args == "isutf8" {
			wrong = !strings.Contains(r.Stdout, "line 1")
		}
		if wrong || r.Status != c.status {
			t.Errorf("%s: status %d, %q, %q; want %d, %q", c.args, r.Status, r.Stdout, r.Stderr, c.status, c.out)
		}
	}
}
