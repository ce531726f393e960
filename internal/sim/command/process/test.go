package process

import (
	"errors"
	"math"
	"strings"

	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/condition"
	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
	"github.com/paddock-sandbox/paddock/internal/sim/vfs"
)

// runTest is test and [ as programs.
func runTest(t *kernel.Task) int {
	args := t.Args[1:]
	if t.Name() == "[" {
		if len(args) == 0 || args[len(args)-1] != "]" {
			t.Errorf("missing %s", command.Quote("]"))
			return 2
		}
		args = args[:len(args)-1]
	}
	h := &condition.Host{
		View:     &t.View,
		Stat:     func(path string) (vfs.Info, error) { return command.Stat(t, path) },
		Terminal: func(fd int) bool { _, _, ok := command.TerminalSize(t, fd); return ok },
	}
	h.NoOrder = true
	h.Number = func(s string) (int64, error) {
		n, err := condition.Integer(s)
		if digits := strings.TrimLeft(strings.TrimSpace(s), "+-"); err != nil && digits != "" && strings.Trim(digits, "0123456789") == "" {
			n, err = math.MaxInt64, nil // GNU's has numbers of any size
			if strings.TrimSpace(s)[0] == '-' {
				n = math.MinInt64
			}
		}
		return n, err
	}
	yes, err := h.Test(args, int(t.K.Limits.Nesting))
	if err != nil {
		t.Errorf("%s", testWords(err, args))
		return 2
	}
	if yes {
		return 0
	}
	return 1
}

// testWords says what is wrong as GNU's test does.
func testWords(err error, args []string) string {
	var e *condition.Error
	if !errors.As(err, &e) {
		return err.Error()
	}
	last := command.Quote(args[len(args)-1])
	switch e.Kind {
	case condition.NotInteger:
		return "invalid integer " + command.Quote(e.What)
	case condition.NotBinary:
		return command.Quote(e.What) + ": binary operator expected"
	case condition.TooMany:
		return "extra argument " + command.Quote(e.What)
	case condition.MissingParen:
		if e.What != "" {
			return command.Quote(")") + " expected, found " + e.What
		}
		return command.Quote(")") + " expected"
	case condition.NotUnary, condition.Missing:
	}
	return "missing argument after " + last
}
