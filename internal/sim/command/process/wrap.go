package process

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"strings"
	"time"

	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
	"github.com/paddock-sandbox/paddock/internal/sim/strftime"
)

var stdbufSpec = &command.Spec{
	Name: "stdbuf", Synopsis: "OPTION... COMMAND", Exit: 125, Ordered: true, About: "Run COMMAND, with modified buffering operations for its standard streams. (Every tool of this computer writes out what it has when it waits.)",
	Options: []command.Option{
		{Short: 'i', Long: "input", Arg: command.Required, Name: "MODE", Help: "adjust standard input stream buffering"},
		{Short: 'o', Long: "output", Arg: command.Required, Name: "MODE", Help: "adjust standard output stream buffering"},
		{Short: 'e', Long: "error", Arg: command.Required, Name: "MODE", Help: "adjust standard error stream buffering"},
	},
}

func runStdbuf(t *kernel.Task) int {
	a, status, ok := stdbufSpec.Parse(t)
	if !ok {
		return status
	}
	if len(a.Operands) == 0 {
		return stdbufSpec.Usage(t, "missing operand")
	}
	if len(a.Flags) == 0 {
		return stdbufSpec.Usage(t, "you must specify a buffering mode option")
	}
	for _, f := range a.Flags {
		v := f.Value
		if v == "L" && f.Key == "i" {
			return stdbufSpec.Usage(t, "line buffering stdin is meaningless")
		}
		if v != "L" && (v == "" || strings.Trim(strings.TrimRight(v, "bkKMGTPEB"), "0123456789") != "") {
			t.Errorf("invalid mode ‘%s’", v)
			return 125
		}
	}
	return become(t, kernel.Command{Args: a.Operands})
}

// runIfne runs a program if there is something on standard input.
func runIfne(t *kernel.Task) int {
	args := t.Args[1:]
	empty := len(args) > 0 && args[0] == "-n"
	if empty {
		args = args[1:]
	}
	if len(args) == 0 {
		_, _ = t.Write(2, []byte("Usage: ifne [-n] command [args]\n"))
		return 1
	}
	first, err := t.In().Peek(1)
	if some := len(first) > 0; some == empty {
		if empty {
			_, err = t.In().WriteTo(t.Out())
		}
		if err != nil && !some {
			return 0
		}
		return 0
	}
	r, w := kernel.Pipe()
	child, err := t.Spawn(kernel.Command{Args: args}, func(c *kernel.Task) error { return c.SetFD(0, r, false) })
	if err != nil {
		w.Drop()
		t.Errorf("%s: %s", args[0], reason(err))
		return 127
	}
	buf := make([]byte, 32<<10)
	for {
		n, rerr := t.In().Read(buf)
		if n > 0 {
			if _, werr := w.File.Write(t, buf[:n]); werr != nil {
				break
			}
		}
		if rerr != nil {
			break
		}
	}
	w.Drop()
	s, err := t.Wait(child)
	if err != nil {
		return 1
	}
	return s.Shell()
}

// runChronic runs a program and shows what it says only where it fails.
func runChronic(t *kernel.Task) int {
	args := t.Args[1:]
	verbose, errors := false, false
	for len(args) > 0 && strings.HasPrefix(args[0], "-") && len(args[0]) > 1 {
		for _, c := range args[0][1:] {
			switch c {
			case 'v':
				verbose = true
			case 'e':
				errors = true
			default:
				_, _ = t.Write(2, []byte("usage: chronic [-ev] COMMAND...\n"))
				return 1
			}
		}
		args = args[1:]
	}
	if len(args) == 0 {
		_, _ = t.Write(2, []byte("usage: chronic [-ev] COMMAND...\n"))
		return 1
	}
	limit := t.K.Limits.Input
	out, stdout := kernel.NewBuffer(limit)
	errs, stderr := kernel.NewBuffer(limit)
	defer stdout.Free()
	defer stderr.Free()
	child, err := t.Spawn(kernel.Command{Args: args}, func(c *kernel.Task) error {
		if err := c.SetFD(1, out, false); err != nil {
			return err
		}
		return c.SetFD(2, errs, false)
	})
	if err != nil {
		t.Errorf("%s: %s", args[0], reason(err))
		return 127
	}
	s, err := t.Wait(child)
	if err != nil {
		return 1
	}
	code := s.Shell()
	if code == 0 && (!errors || len(stderr.Bytes()) == 0) {
		return 0
	}
	if verbose {
		fmt.Fprintf(t.Out(), "STDOUT:\n%s\nSTDERR:\n%s\nRETVAL: %d\n", stdout.Bytes(), stderr.Bytes(), code)
		return code
	}
	if err := t.Flush(); err != nil {
		return 1
	}
	_, _ = t.Write(1, stdout.Bytes()) // a reader that is gone ends it
	_, _ = t.Write(2, stderr.Bytes())
	return code
}

var tsSpec = &command.Spec{
	Name: "ts", Synopsis: "[-i | -s] [-u] [format]", About: "Timestamp input.", NoTry: true,
	Options: []command.Option{{Short: 'i', Help: "the time since the line before"}, {Short: 's', Help: "the time since the start"}, {Short: 'm', Help: "use the system's monotonic clock"}, {Short: 'u', Help: "use UTC"}},
}

func runTS(t *kernel.Task) int {
	a, status, ok := tsSpec.Parse(t)
	if !ok {
		return status
	}
	between, since := a.Has("i"), a.Has("s")
	format := "%b %d %H:%M:%S"
	if between || since {
		format = "%H:%M:%S"
	}
	if len(a.Operands) > 0 {
		format = a.Operands[0]
	}
	for _, x := range [][2]string{{"%.S", "%S.%6N"}, {"%.s", "%s.%6N"}, {"%.T", "%T.%6N"}} {
		format = strings.ReplaceAll(format, x[0], x[1])
	}
	zone := time.UTC
	if !a.Has("u") && !between && !since {
		zone = strftime.Zone(t.Getenv("TZ"))
	}
	last := t.K.Now()
	for {
		line, err := t.In().ReadBytes('\n')
		t.Step(4 + len(line)/64)
		if len(line) > 0 {
			now := t.K.Now()
			at := now.In(zone)
			if between || since {
				at = time.Unix(0, 0).UTC().Add(now.Sub(last))
			}
			if between {
				last = now
			}
			if !bytes.HasSuffix(line, []byte("\n")) {
				line = append(line, '\n')
			}
			stamp, err := strftime.Append(nil, format, at, strftime.Date)
			if err != nil {
				t.Errorf("%s", err)
				return 1
			}
			fmt.Fprintf(t.Out(), "%s %s", stamp, line)
			if t.In().Buffered() == 0 {
				if err := t.Flush(); err != nil {
					return 1
				}
			}
		}
		if err != nil {
			return 0
		}
	}
}

func runHostid(t *kernel.Task) int {
	a, status, ok := (&command.Spec{Name: "hostid", About: "Print the numeric identifier (in hexadecimal) for the current host."}).Parse(t)
	if !ok {
		return status
	}
	if len(a.Operands) > 0 {
		t.Errorf("extra operand ‘%s’\nTry 'hostid --help' for more information.", a.Operands[0])
		return 1
	}
	say(t, "007f0101")
	return 0
}

var uuidgenSpec = &command.Spec{
	Name: "uuidgen", Synopsis: "[options]", About: "Create a new UUID value.", NoTry: true,
	Options: []command.Option{{Short: 'r', Long: "random", Help: "generate random-based uuid"}, {Short: 't', Long: "time", Help: "(refused: a time and an address would tell of the host)"}},
}

func runUUIDGen(t *kernel.Task) int {
	a, status, ok := uuidgenSpec.Parse(t)
	if !ok {
		return status
	}
	if a.Has("t") {
		t.Errorf("time-based UUIDs are not made in this sandbox")
		return 1
	}
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	say(t, fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:]))
	return 0
}
