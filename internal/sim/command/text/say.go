package text

import (
	"bytes"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
	"github.com/paddock-sandbox/paddock/internal/sim/printf"
)

var trueSpec = command.Spec{Name: "true", Synopsis: "[ignored command line arguments]", About: "Exit with a status code indicating success."}

func runTrue(t *kernel.Task) int {
	if len(t.Args) == 2 && (t.Args[1] == "--help" || t.Args[1] == "--version") {
		_, _, _ = trueSpec.Parse(t)
	}
	return 0
}

var falseSpec = command.Spec{Name: "false", Synopsis: "[ignored command line arguments]", About: "Exit with a status code indicating failure."}

func runFalse(t *kernel.Task) int {
	if len(t.Args) == 2 && (t.Args[1] == "--help" || t.Args[1] == "--version") {
		_, _, _ = falseSpec.Parse(t)
	}
	return 1
}

var yesSpec = command.Spec{Name: "yes", Synopsis: "[STRING]...", About: "Repeatedly output a line with all specified STRING(s), or 'y'.", Ordered: true}

func runYes(t *kernel.Task) int {
	a, status, ok := yesSpec.Parse(t)
	if !ok {
		return status
	}
	line := "y\n"
	if len(a.Operands) > 0 {
		line = strings.Join(a.Operands, " ") + "\n"
	}
	n := max(1, 16<<10/len(line))
	t.Grow(n * len(line))
	b := bytes.Repeat([]byte(line), n)
	for {
		t.Step(n)
		if _, err := t.Write(1, b); err != nil {
			t.Errorf("standard output: %s", reason(err))
			return 1
		}
	}
}

var echoSpec = command.Spec{
	Name: "echo", Synopsis: "[SHORT-OPTION]... [STRING]...", About: "Echo the STRING(s) to standard output.",
	Options: []command.Option{
		{Short: 'n', Help: "do not output the trailing newline"},
		{Short: 'e', Help: "enable interpretation of backslash escapes"},
		{Short: 'E', Help: "disable interpretation of backslash escapes (default)"},
	},
}

func runEcho(t *kernel.Task) int {
	args := t.Args[1:]
	if len(args) == 1 && (args[0] == "--help" || args[0] == "--version") {
		_, status, _ := echoSpec.Parse(t)
		return status
	}
	newline, escapes := true, false
	for len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' && strings.Trim(args[0][1:], "neE") == "" {
		for _, c := range args[0][1:] {
			switch c {
			case 'n':
				newline = false
			case 'e':
				escapes = true
			case 'E':
				escapes = false
			}
		}
		args = args[1:]
	}
	w := command.Stdout(t)
	for i, arg := range args {
		if i > 0 {
			w.Byte(' ')
		}
		if !escapes {
			w.String(arg)
		} else if !echoEscaped(w, arg) {
			return 0
		}
	}
	if newline {
		w.Byte('\n')
	}
	return 0
}

// echoEscaped writes text with its escapes; \c ends everything.
func echoEscaped(w *command.Writer, s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			w.Byte(s[i])
			continue
		}
		i++
		switch c := s[i]; c {
		case 'c':
			return false
		case 'e':
			w.Byte(27)
		case '0', '1', '2', '3', '4', '5', '6', '7':
			if c == '0' && i+1 < len(s) && s[i+1] >= '0' && s[i+1] <= '7' {
				i++
			}
			n := 0
			for k := 0; k < 3 && i < len(s) && s[i] >= '0' && s[i] <= '7'; k++ {
				n = n*8 + int(s[i]-'0')
				i++
			}
			i--
			w.Byte(byte(n))
		case 'x':
			n, digits := 0, 0
			for digits < 2 && i+1 < len(s) {
				v, err := strconv.ParseUint(s[i+1:i+2], 16, 8)
				if err != nil {
					break
				}
				n = n*16 + int(v)
				digits++
				i++
			}
			if digits == 0 {
				w.String("\\x")
			} else {
				w.Byte(byte(n))
			}
		default:
			if k := strings.IndexByte(`abtnvfr\`, c); k >= 0 {
				w.Byte("\a\b\t\n\v\f\r\\"[k])
			} else {
				w.Byte('\\')
				w.Byte(c)
			}
		}
	}
	return true
}

var printfSpec = command.Spec{Name: "printf", Synopsis: "FORMAT [ARGUMENT]...", About: "Print ARGUMENT(s) according to FORMAT."}

func runPrintf(t *kernel.Task) int {
	args := t.Args[1:]
	if len(args) == 1 && (args[0] == "--help" || args[0] == "--version") {
		_, status, _ := printfSpec.Parse(t)
		return status
	}
	if len(args) > 0 && args[0] == "--" {
		args = args[1:]
	}
	if len(args) == 0 {
		return printfSpec.Usage(t, "missing operand")
	}
	type warning struct {
		at   int
		text string
	}
	var warnings []warning
	out, status, err := printf.Compile(args[0], printf.GNU).Append(nil, args[1:], &printf.Env{
		Limit: int(min(t.K.Limits.String, math.MaxInt32)), Quote: command.Quote, Bytes: t.Bytewise(),
		Warn: func(at int, text string) {
			t.Grow(len(text) + 24)
			warnings = append(warnings, warning{at, text})
		},
	})
	if err != nil {
		t.Bound("string", t.K.Limits.String+1, t.K.Limits.String)
	}
	w := command.Stdout(t)
	done := 0
	for _, x := range warnings {
		w.Bytes(out[done:x.at])
		done = x.at
		t.Errorf("%s", x.text)
	}
	w.Bytes(out[done:])
	return status
}

var sleepSpec = command.Spec{
	Name: "sleep", Synopsis: "NUMBER[SUFFIX]...",
	About: "Pause for NUMBER seconds. SUFFIX may be 's' for seconds (the default), 'm' for minutes, 'h' for hours or 'd' for days.",
}

func runSleep(t *kernel.Task) int {
	a, status, ok := sleepSpec.Parse(t)
	if !ok {
		return status
	}
	if len(a.Operands) == 0 {
		return sleepSpec.Usage(t, "missing operand")
	}
	total, bad := 0.0, false
	for _, s := range a.Operands {
		d, ok := interval(s)
		if !ok {
			t.Errorf("invalid time interval %s", command.Quote(s))
			bad = true
		}
		total += d
	}
	if bad {
		_, _ = t.Write(2, []byte("Try 'sleep --help' for more information.\n"))
		return 1
	}
	const most = float64(1 << 31 * time.Second)
	for total > 0 {
		d := time.Duration(min(total*float64(time.Second), most))
		if err := t.Sleep(d); err != nil {
			t.Errorf("cannot read realtime clock: %s", reason(err))
			return 1
		}
		total -= d.Seconds()
		if total < 1e-9 {
			break
		}
	}
	return 0
}

// interval reads a number of seconds, minutes, hours or days.
func interval(s string) (float64, bool) {
	factor := 1.0
	if s != "" {
		switch s[len(s)-1] {
		case 's':
			s = s[:len(s)-1]
		case 'm':
			factor, s = 60, s[:len(s)-1]
		case 'h':
			factor, s = 3600, s[:len(s)-1]
		case 'd':
			if !strings.HasPrefix(s, "0x") {
				factor, s = 86400, s[:len(s)-1]
			}
		}
	}
	f, nan, ok := command.ParseFloat(s)
	if !ok || nan || f.Sign() < 0 {
		return 0, false
	}
	v, _ := f.Float64()
	return v * factor, true
}
