package text

import (
	"bytes"
	"unicode/utf8"

	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
	"github.com/paddock-sandbox/paddock/internal/sim/regex"
)

var tacSpec = command.Spec{
	Name: "tac", Synopsis: "[OPTION]... [FILE]...",
	About: "Write each FILE to standard output, last line first.",
	Options: []command.Option{
		{Short: 'b', Long: "before", Help: "attach the separator before instead of after"},
		{Short: 'r', Long: "regex", Help: "interpret the separator as a regular expression"},
		{Short: 's', Long: "separator", Arg: command.Required, Name: "STRING", Help: "use STRING as the separator instead of newline"},
	},
}

func runTac(t *kernel.Task) int {
	a, status, ok := tacSpec.Parse(t)
	if !ok {
		return status
	}
	separator := []byte("\n")
	if s, ok := a.Value("s"); ok {
		if separator = []byte(s); s == "" {
			if a.Has("r") {
				t.Errorf("separator cannot be empty")
				return 1
			}
			separator = []byte{0}
		}
	}
	find := func(b []byte) (at, n int) { return bytes.LastIndex(b, separator), len(separator) }
	if a.Has("r") {
		re, err := command.CompileRegex(t, string(separator), regex.Options{Flavour: regex.Emacs})
		if err != nil {
			t.Errorf("%s", err)
			return 1
		}
		find = func(b []byte) (int, int) { return lastMatch(t, re, b) }
	}
	before := a.Has("b")
	w := command.Stdout(t)
	return command.ReadErrors{Open: "failed to open %s for reading", Read: "%s: read error"}.Each(t, command.InputNames(a.Operands), func(_ string, r *command.Reader) {
		b, err := r.All()
		if err == nil {
			backwards(t, w, b, before, find)
		}
		t.Shrink(cap(b))
	})
}

// lastMatch finds the match that begins last.
func lastMatch(t *kernel.Task, re *regex.Regexp, b []byte) (at, n int) {
	var m []int
	for at := len(b) - 1; at >= 0; at-- {
		t.Step(1)
		m, err := re.FindAt(b, at, m)
		if err != nil {
			t.Errorf("error in regular expression search")
			t.Exit(1)
		}
		if m != nil {
			return at, m[1] - at
		}
	}
	return -1, 0
}

func backwards(t *kernel.Task, w *command.Writer, b []byte, before bool, find func([]byte) (int, int)) {
	end := len(b) // of what is not written yet
	for look := len(b); ; {
		at, n := find(b[:look])
		t.Step(1)
		if at < 0 {
			w.Bytes(b[:end])
			return
		}
		cut := at + n
		if before {
			cut = at
		}
		w.Bytes(b[cut:end])
		end, look = cut, at
	}
}

var revSpec = command.Spec{
	Name: "rev", Synopsis: "[options] [file ...]",
	About:   "Reverse lines characterwise.",
	Options: []command.Option{{Short: 'h', Long: "help"}, {Short: 'V', Long: "version"}, {Short: '0', Long: "zero", Help: "use the NUL as line separator"}},
	NoHelp:  true,
}

func runRev(t *kernel.Task) int {
	a, status, ok := revSpec.Parse(t)
	if !ok {
		return status
	}
	w := command.Stdout(t)
	if a.Has("h") || a.Has("V") {
		w.String("Usage:\n rev [options] [file ...]\n\nReverse lines characterwise.\n")
		return 0
	}
	delim := byte('\n')
	if a.Has("0") {
		delim = 0
	}
	status = 0
	for _, name := range command.InputNames(a.Operands) {
		if len(a.Operands) > 0 {
			if _, err := t.View.Stat(name); err != nil {
				t.Errorf("cannot open %s: %s", name, reason(err))
				status = 1
				continue
			}
			if name == "-" {
				name = "./-" // a file: only without operands standard input is read
			}
		}
		status = max(status, command.EachFile(t, []string{name}, func(_ string, r *command.Reader) {
			var out []byte
			for {
				line, ended, ok := r.Line(delim)
				if !ok {
					return
				}
				out = out[:0]
				if i := bytes.IndexByte(line, 0); i >= 0 && delim != 0 {
					line, ended = line[:i], false // the line is a string of C to it
				}
				for len(line) > 0 {
					_, n := utf8.DecodeLastRune(line)
					out = append(out, line[len(line)-n:]...)
					line = line[:len(line)-n]
				}
				if ended {
					out = append(out, delim)
				}
				w.Bytes(out)
			}
		}))
	}
	return status
}
