package text

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
)

// runPager is less and more where nobody turns pages: they pass their input
// on, as the real ones do when standard output is no terminal. Options change
// what a terminal shows, and are read over.
func runPager(t *kernel.Task) int {
	var names []string
	args := t.Args[1:]
	for i := 0; i < len(args); i++ {
		a := args[i]
		switch {
		case a == "--help" || a == "-?":
			command.Stdout(t).String("Usage: " + t.Name() + " [options] [file]...\n\nShow files. There is no terminal to turn pages on in this sandbox: all is shown at once.\n")
			return 0
		case a == "--version" || a == "-V":
			command.Stdout(t).String(t.Name() + " (Paddock)\n")
			return 0
		case a == "--":
			names = append(names, args[i+1:]...)
			i = len(args)
		case len(a) > 1 && (a[0] == '-' || a[0] == '+'):
			if len(a) == 2 && strings.Contains("bhjkopPtTxyzD", a[1:]) && t.Name() == "less" || a == "-n" && t.Name() == "more" {
				i++ // its value
			}
		default:
			names = append(names, a)
		}
	}
	w := command.Stdout(t)
	several := len(names) > 1 && t.Name() == "more"
	if len(names) == 0 {
		names = []string{"-"}
	}
	status := 0
	for _, name := range names {
		if i, err := t.View.Stat(name); err == nil && i.IsDir() {
			if t.Name() == "more" {
				w.String("\n*** " + name + ": directory ***\n\n")
			} else {
				t.Errorf("%s is a directory", name)
				status = 1
			}
			continue
		}
		in, err := command.OpenReader(t, name)
		if err != nil {
			if t.Name() == "more" {
				t.Errorf("cannot open %s: %s", name, reason(err))
				status = 1
			} else { // which is no failure to it
				_ = t.Flush() // the end of the program tells of it
				_, _ = t.Write(2, []byte(name+": "+reason(err)+"\n"))
			}
			continue
		}
		if several {
			w.String("::::::::::::::\n" + name + "\n::::::::::::::\n")
		}
		for {
			b, ok := in.Piece()
			if !ok {
				break
			}
			w.Bytes(b)
		}
		if err := in.Err(); err != nil {
			t.Errorf("%s: %s", name, reason(err))
			status = 1
		}
		in.Close()
	}
	return status
}

// runCombine puts the lines of two files together as sets.
func runCombine(t *kernel.Task) int {
	if len(t.Args) != 4 {
		_, _ = t.Write(2, []byte("usage: combine file1 OP file2\nop: and, not, or, xor\n"))
		return 1
	}
	var lines [2][][]byte
	var sets [2]map[string]bool
	for i, name := range []string{t.Args[1], t.Args[3]} {
		b, err := command.ReadAll(t, name)
		if err != nil {
			t.Errorf("%s: %s", name, reason(err))
			return 1
		}
		t.Grow(3 * len(b))
		sets[i] = map[string]bool{}
		for l := range bytes.Lines(b) {
			t.Step(1)
			l = bytes.TrimSuffix(l, []byte("\n"))
			lines[i] = append(lines[i], l)
			sets[i][string(l)] = true
		}
	}
	w := command.Stdout(t)
	show := func(list [][]byte, other map[string]bool, in bool) {
		for _, l := range list {
			if other == nil || other[string(l)] == in {
				w.Bytes(l)
				w.Byte('\n')
			}
		}
	}
	switch strings.ToLower(t.Args[2]) {
	case "and":
		show(lines[0], sets[1], true)
	case "not":
		show(lines[0], sets[1], false)
	case "or":
		show(lines[0], nil, true)
		show(lines[1], nil, true)
	case "xor":
		show(lines[0], sets[1], false)
		show(lines[1], sets[0], false)
	default:
		t.Errorf("unknown operation, %s", t.Args[2])
		return 1
	}
	return 0
}

var isutf8Spec = &command.Spec{
	Name: "isutf8", Synopsis: "[options] [file]...", About: "Check whether files are valid UTF-8.", NoTry: true,
	Options: []command.Option{{Short: 'q', Long: "quiet", Help: "print nothing"}, {Short: 'l', Long: "list", Help: "print the names of files that are not UTF-8"}, {Short: 'i', Long: "invert", Help: "print the names of files that are UTF-8"}},
}

func runIsUTF8(t *kernel.Task) int {
	a, status, ok := isutf8Spec.Parse(t)
	if !ok {
		return status
	}
	w := command.Stdout(t)
	status = 0
	for _, name := range command.InputNames(a.Operands) {
		b, err := command.ReadAll(t, name)
		if err != nil {
			t.Errorf("%s: %s", name, reason(err))
			status = 1
			continue
		}
		t.Step(1 + len(b)/64)
		shown := name
		if name == "-" {
			shown = "(standard input)"
		}
		valid := utf8.Valid(b)
		if !valid {
			status = 1
		}
		switch {
		case a.Has("q"):
		case a.Has("i") && valid, a.Has("l") && !valid:
			w.String(shown + "\n")
		case a.Has("i") || a.Has("l") || valid:
		default:
			line, column, at := 1, 0, 0
			for at < len(b) {
				r, n := utf8.DecodeRune(b[at:])
				if r == utf8.RuneError && n == 1 {
					break
				}
				if column++; r == '\n' {
					line, column = line+1, 0
				}
				at += n
			}
			w.Printf("%s: line %d, char %d, byte %d: invalid UTF-8 code\n", shown, line, column, at)
		}
	}
	return status
}
