package find

import (
	"bytes"
	"fmt"
	"strings"
	"time"

	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
	"github.com/paddock-sandbox/paddock/internal/sim/linux"
	"github.com/paddock-sandbox/paddock/internal/sim/quote"
)

var xargsSpec = &command.Spec{
	Name: "xargs", Synopsis: "[OPTION]... COMMAND [INITIAL-ARGS]...", Ordered: true,
	About: "Run COMMAND with arguments INITIAL-ARGS and more arguments read from input.",
	Options: []command.Option{
		{Short: '0', Long: "null", Help: "items are separated by a null, not whitespace; disables quote and backslash processing and logical EOF processing"},
		{Short: 'a', Long: "arg-file", Arg: command.Required, Name: "FILE", Help: "read arguments from FILE, not standard input"},
		{Short: 'd', Long: "delimiter", Arg: command.Required, Name: "CHARACTER", Help: "items in input stream are separated by CHARACTER, not by whitespace"},
		{Short: 'E', Arg: command.Required, Name: "END", Help: "set logical EOF string"},
		{Short: 'e', Long: "eof", Arg: command.Optional, Name: "END", Help: "equivalent to -E END if END is specified; otherwise, there is no end-of-file string"},
		{Short: 'I', Arg: command.Required, Name: "R", Help: "same as --replace=R"},
		{Short: 'i', Long: "replace", Arg: command.Optional, Name: "R", Help: "replace R in INITIAL-ARGS with names read from standard input"},
		{Short: 'L', Arg: command.Required, Name: "MAX-LINES", Help: "use at most MAX-LINES non-blank input lines per command line"},
		{Short: 'l', Long: "max-lines", Arg: command.Optional, Name: "MAX-LINES", Help: "similar to -L but defaults to at most one non-blank input line"},
		{Short: 'n', Long: "max-args", Arg: command.Required, Name: "MAX-ARGS", Help: "use at most MAX-ARGS arguments per command line"},
		{Short: 'o', Long: "open-tty", Help: "reopen stdin as /dev/tty in the child process"},
		{Short: 'P', Long: "max-procs", Arg: command.Required, Name: "MAX-PROCS", Help: "run at most MAX-PROCS processes at a time"},
		{Short: 'p', Long: "interactive", Help: "prompt before running commands"},
		{Long: "process-slot-var", Arg: command.Required, Name: "VAR", Help: "set environment variable VAR in child processes"},
		{Short: 'r', Long: "no-run-if-empty", Help: "if there are no arguments, then do not run COMMAND"},
		{Short: 's', Long: "max-chars", Arg: command.Required, Name: "MAX-CHARS", Help: "limit length of command line to MAX-CHARS"},
		{Long: "show-limits", Help: "show limits on command-line length"},
		{Short: 't', Long: "verbose", Help: "print commands before executing them"},
		{Short: 'x', Long: "exit", Help: "exit if the size (see -s) is exceeded"},
	},
}

// A runner is a run of xargs.
type runner struct {
	t       *kernel.Task
	in      *command.Reader
	args    []string // the command and its first arguments
	delim   int      // -1 is white space, with quotes
	end     string   // the logical end of the input
	ended   bool     // it has one
	replace string
	lines   int // most of them for a command; 0 is any
	most    int // arguments, the same
	chars   int
	exit    bool // where chars are not enough
	procs   int
	ask     bool
	show    bool
	slotVar string
	tty     bool
	deaf    bool // programs read nothing: standard input is read already

	children []*child
	status   int
	stop     bool
	list     []string
	size     int
}

type child struct {
	task *kernel.Task
	slot int
}

const maxChars = 128 << 10

func runXargs(t *kernel.Task) int {
	a, status, ok := xargsSpec.Parse(t)
	if !ok {
		return status
	}
	r := &runner{t: t, delim: -1, procs: 1, chars: maxChars, args: a.Operands}
	if len(r.args) == 0 {
		r.args = []string{"echo"}
	}
	file, hasFile := a.Value("a")
	noEmpty := a.Has("r")
	for _, f := range a.Flags {
		if !r.option(f) {
			return 1
		}
	}
	if r.replace != "" {
		r.exit = true
	}
	size := 0
	for _, x := range r.args {
		size += len(x) + 1
	}
	if size > r.chars {
		t.Errorf("cannot fit single argument within argument list size limit")
		return 1
	}
	in, err := command.StdinReader(t)
	if hasFile {
		in, err = command.OpenReader(t, file)
	}
	if err != nil {
		t.Errorf("Cannot open input file %s: %s", command.Quote(file), reason(err))
		return 1
	}
	r.in = in
	defer in.Close()
	r.deaf = !hasFile
	defer r.waitAll()
	r.feed(noEmpty)
	r.waitAll()
	return r.status
}

func (r *runner) option(f command.Flag) bool {
	t := r.t
	number := func(least int64) (int, bool) {
		n, err := command.ParseInt(f.Value, "", -1<<31, 1<<31-1)
		if err != nil {
			t.Errorf("invalid number \"%s\" for -%s option", f.Value, f.Key)
			_, _ = t.Write(2, []byte("Try 'xargs --help' for more information.\n"))
			return 0, false
		}
		if n < least {
			t.Errorf("value %s for -%s option should be >= %d", f.Value, f.Key, least)
			_, _ = t.Write(2, []byte("Try 'xargs --help' for more information.\n"))
			return 0, false
		}
		return int(n), true
	}
	ok := true
	switch f.Key {
	case "0":
		r.delim = 0
	case "d":
		r.delim, ok = delimiter(t, f.Value)
	case "E", "e":
		r.end, r.ended = f.Value, f.Value != ""
	case "I", "i":
		r.replace = f.Value
		if !f.Given {
			r.replace = "{}"
		}
		r.excludes("--replace/-I/-i")
		r.lines = 1
	case "L", "l":
		r.excludes(map[string]string{"L": "-L", "l": "--max-lines/-l"}[f.Key])
		r.lines, r.replace = 1, ""
		if f.Given {
			r.lines, ok = number(1)
		}
		r.exit = r.exit || f.Key == "l"
	case "n":
		if r.most, ok = number(1); ok {
			r.lines = 0
			if r.replace != "" && r.most > 1 {
				r.replace = ""
			} else if r.replace != "" {
				r.most, r.lines = 0, 1
			}
		}
	case "P":
		if r.procs, ok = number(0); ok && (r.procs == 0 || r.procs > 256) {
			r.procs = 256
		}
	case "s":
		var n int
		if n, ok = number(1); ok {
			r.chars = min(n, 2<<20)
		}
	case "x":
		r.exit = true
	case "p":
		r.ask = true
	case "t":
		r.show = true
	case "o":
		r.tty = true
	case "process-slot-var":
		if strings.Contains(f.Value, "=") {
			t.Errorf("option --process-slot-var may not be set to a value which includes `='")
			ok = false
		}
		r.slotVar = f.Value
	case "show-limits":
		_, _ = t.Write(2, []byte(fmt.Sprintf("Size of command buffer we are actually using: %d\nMaximum parallelism (--max-procs must be no greater): 256\n", r.chars)))
	}
	return ok
}

// excludes takes -n back where an option follows that it does not go with.
func (r *runner) excludes(option string) {
	if r.most > 0 {
		r.t.Errorf("warning: options --max-args and %s are mutually exclusive, ignoring previous --max-args value", option)
	}
	r.most = 0
}

// delimiter reads the argument of -d.
func delimiter(t *kernel.Task, s string) (int, bool) {
	if len(s) == 1 {
		return int(s[0]), true
	}
	if len(s) > 1 && s[0] == '\\' {
		const from, to = "abfnrtv\\", "\a\b\f\n\r\t\v\\"
		if i := strings.IndexByte(from, s[1]); i >= 0 && len(s) == 2 {
			return int(to[i]), true
		}
		base, digits := 8, s[1:]
		if s[1] == 'x' {
			base, digits = 16, s[2:]
		}
		n := 0
		valid := digits != ""
		for _, c := range []byte(strings.ToLower(digits)) {
			k := strings.IndexByte("0123456789abcdef"[:base], c)
			if valid = valid && k >= 0; !valid {
				break
			}
			if n = n*base + k; n > 255 {
				break
			}
		}
		if valid && n <= 255 {
			return n, true
		}
		if valid {
			t.Errorf("Invalid escape sequence %s in input delimiter specification; character values must not exceed %s.", s, map[int]string{8: "0377", 16: "ff"}[base])
			return 0, false
		}
		t.Errorf("Invalid escape sequence %s in input delimiter specification.", s)
		return 0, false
	}
	t.Errorf("Invalid input delimiter specification %s: the delimiter must be either a single character or an escape sequence starting with \\.", s)
	return 0, false
}

// feed reads the input and runs commands on it.
func (r *runner) feed(noEmpty bool) {
	base := 0
	for _, a := range r.args {
		base += len(a) + 1
	}
	r.size = base
	ran, lines := false, 0
	run := func() {
		ran = true
		r.run(append(append([]string{}, r.args...), r.list...))
		r.list, r.size, lines = r.list[:0], base, 0
	}
	for !r.stop {
		item, eol, ok := r.next()
		if !ok {
			break
		}
		if r.replace != "" {
			ran = true
			r.substitute(item)
			continue
		}
		if r.size+len(item)+1 > r.chars {
			if len(r.list) == 0 {
				r.fail("argument line too long")
				return
			}
			if r.exit && (r.lines > 0 || r.most > 0) {
				r.fail("argument list too long")
				return
			}
			run()
			if r.size+len(item)+1 > r.chars {
				r.fail("argument line too long")
				return
			}
		}
		r.list = append(r.list, item)
		r.size += len(item) + 1
		if eol {
			lines++
		}
		if r.most > 0 && len(r.list) >= r.most || r.lines > 0 && lines >= r.lines {
			run()
		}
	}
	if err := r.in.Err(); err != nil {
		r.fail(reason(err))
	}
	if !r.stop && r.replace == "" && (len(r.list) > 0 || !ran && !noEmpty) {
		run()
	}
}

func (r *runner) fail(text string) {
	r.t.Errorf("%s", text)
	r.status, r.stop = 1, true
}

// substitute runs the command with an item in place of the pattern.
func (r *runner) substitute(item string) {
	args := make([]string, len(r.args))
	size := 0
	for i, a := range r.args {
		args[i] = a
		if i > 0 {
			if n := strings.Count(a, r.replace); int64(len(a))+int64(n)*int64(len(item)-len(r.replace)) > int64(r.chars) {
				r.fail("argument list too long")
				return
			}
			args[i] = strings.ReplaceAll(a, r.replace, item) // no longer than r.chars
		}
		if size += len(args[i]) + 1; size > r.chars {
			r.fail("argument list too long")
			return
		}
	}
	r.run(args)
}

// next reads an item. eol tells that a line ended behind it.
func (r *runner) next() (item string, eol, ok bool) {
	if r.delim >= 0 {
		b, _, ok := r.in.Line(byte(r.delim))
		return string(b), true, ok
	}
	if r.replace != "" {
		return r.line()
	}
	return r.word()
}

// line reads a line without the blanks at its start, its quotes taken away.
func (r *runner) line() (item string, eol, ok bool) {
	for {
		b, _, ok := r.in.Line('\n')
		if !ok {
			return "", false, false
		}
		b = bytes.TrimLeft(b, " \t\v\f\r")
		if len(b) == 0 {
			continue
		}
		s, complaint := unquote(b, r.in)
		if complaint != "" {
			r.fail(complaint)
			return "", false, false
		}
		if r.ended && s == r.end {
			return "", false, false
		}
		return s, true, true
	}
}

const (
	unmatchedSingle = "unmatched single quote; by default quotes are special to xargs unless you use the -0 option"
	unmatchedDouble = "unmatched double quote; by default quotes are special to xargs unless you use the -0 option"
)

// unquote takes quotes and backslashes away from a line.
func unquote(b []byte, in *command.Reader) (s, complaint string) {
	out := make([]byte, 0, len(b))
	for i := 0; i < len(b); i++ {
		switch c := b[i]; c {
		case '\'', '"':
			end := bytes.IndexByte(b[i+1:], c)
			if end < 0 {
				if c == '"' {
					return "", unmatchedDouble
				}
				return "", unmatchedSingle
			}
			out = append(out, b[i+1:i+1+end]...)
			i += end + 1
		case '\\':
			if i++; i < len(b) {
				out = append(out, b[i])
				continue
			}
			more, _, ok := in.Line('\n')
			if !ok {
				return string(out), ""
			}
			out = append(out, '\n')
			b = append(b[:len(b):len(b)], more...)
			i--
		default:
			out = append(out, c)
		}
	}
	return string(out), ""
}

// word reads a word. The line goes on where a blank stands before its end.
func (r *runner) word() (item string, eol, ok bool) {
	var b []byte
	inside := false
	for {
		c, err := r.in.ReadByte()
		r.t.Step(16)
		if err != nil {
			if len(b) == 0 || r.ended && string(b) == r.end {
				return "", false, false
			}
			return string(b), true, true
		}
		switch c {
		case ' ', '\t', '\n':
			if !inside {
				continue
			}
			if r.ended && string(b) == r.end {
				return "", false, false
			}
			return string(b), c == '\n', true
		case '\'', '"':
			inside = true
			for {
				q, err := r.in.ReadByte()
				if err != nil || q == '\n' {
					r.fail(map[byte]string{'"': unmatchedDouble, '\'': unmatchedSingle}[c])
					if len(r.list) > 0 {
						r.stop = false // what came before it still counts
						r.run(append(append([]string{}, r.args...), r.list...))
						r.status, r.stop = 1, true
					}
					return "", false, false
				}
				if q == c {
					break
				}
				b = append(b, q)
				if len(b) > r.chars {
					r.fail("argument line too long")
					return "", false, false
				}
			}
		case '\\':
			inside = true
			if c, err = r.in.ReadByte(); err == nil {
				b = append(b, c)
			}
		default:
			inside = true
			b = append(b, c)
		}
		if len(b) > r.chars {
			r.fail("argument line too long")
			return "", false, false
		}
	}
}

// run starts a command, waiting for others if there are too many.
func (r *runner) run(args []string) {
	t := r.t
	if r.show || r.ask {
		words := make([]string, len(args))
		for i, a := range args {
			words[i] = quote.Shell(a)
		}
		line := strings.Join(words, " ")
		if r.ask {
			line += "?..."
		} else {
			line += "\n"
		}
		_ = t.Flush() // the end of the program tells of it
		_, _ = t.Write(2, []byte(line))
		if r.ask && !r.agreed() {
			return
		}
	}
	for len(r.children) >= r.procs && !r.stop {
		r.wait()
	}
	if r.stop {
		return
	}
	slot := 0
	for used := true; used; {
		used = false
		for _, c := range r.children {
			if c.slot == slot {
				slot++
				used = true
			}
		}
	}
	c := kernel.Command{Args: args}
	if r.slotVar != "" {
		for _, e := range t.Env {
			if !strings.HasPrefix(e, r.slotVar+"=") {
				c.Env = append(c.Env, e)
			}
		}
		c.Env = append(c.Env, fmt.Sprintf("%s=%d", r.slotVar, slot))
	}
	own, err := t.Spawn(c, func(child *kernel.Task) error {
		name := "/dev/null"
		switch {
		case r.tty:
			name = "/dev/tty"
		case !r.deaf:
			return nil
		}
		d, err := child.Open(name, linux.O_RDONLY, 0)
		if err != nil {
			return nil //nolint:nilerr // then it reads what xargs reads
		}
		return child.SetFD(0, d, false)
	})
	if err != nil {
		t.Errorf("%s: %s", command.QuoteFile(args[0]), reason(err))
		r.stop = true
		if r.status = 126; err == linux.ENOENT {
			r.status = 127
		}
		return
	}
	r.children = append(r.children, &child{own, slot})
	if r.procs == 1 {
		r.wait()
	}
}

func (r *runner) agreed() bool {
	d, err := r.t.Open("/dev/tty", linux.O_RDONLY, 0)
	if err != nil {
		r.fail("failed to open /dev/tty for reading: " + reason(err))
		return false
	}
	d.Hold()
	defer d.Drop()
	b := make([]byte, 256)
	n, err := d.File.Read(r.t, b)
	return err == nil && n > 0 && (b[0] == 'y' || b[0] == 'Y')
}

// wait waits for the end of one of the commands.
func (r *runner) wait() {
	if len(r.children) == 0 {
		return
	}
	tasks := make([]*kernel.Task, len(r.children))
	for n, c := range r.children {
		tasks[n] = c.task
	}
	i, err := r.t.WaitAny(time.Time{}, tasks...)
	if err != nil || i < 0 {
		r.stop = true
		return
	}
	c := r.children[i]
	r.children = append(r.children[:i], r.children[i+1:]...)
	s, _ := c.task.Status()
	name := c.task.Name()
	switch {
	case s.Signal != 0:
		r.t.Errorf("%s: terminated by signal %d", name, int(s.Signal))
		r.status, r.stop = 125, true
	case s.Code == 255:
		r.t.Errorf("%s: exited with status 255; aborting", name)
		r.status, r.stop = 124, true
	case s.Code != 0 && r.status == 0:
		r.status = 123
	}
}

func (r *runner) waitAll() {
	for len(r.children) > 0 {
		before := len(r.children)
		if r.wait(); len(r.children) == before {
			return
		}
	}
}
