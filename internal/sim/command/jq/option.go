package jq

import (
	"fmt"
	"strings"

	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
	"github.com/paddock-sandbox/paddock/internal/sim/vfs"
)

// parse reads the command line. Where it is not to go on, it has said why.
func (o *options) parse(m *machine) (status int, ok bool) {
	t := m.t
	args := t.Args[1:]
	rest := "" // what operands are, after --args or --jsonargs
	literal := false
	operand := func(a string) bool {
		switch {
		case !o.hasProgram && o.file == "":
			o.program, o.hasProgram = a, true
		case rest == "args":
			o.positional = append(o.positional, clean([]byte(a)))
		case rest == "jsonargs":
			v, err := m.decodeAll([]byte(a))
			if err != nil || len(v) != 1 {
				t.Errorf("Invalid JSON text passed to --jsonargs")
				usage(t, 2)
				return false
			}
			o.positional = append(o.positional, v[0])
		default:
			o.names = append(o.names, a)
		}
		return true
	}
	take := func(n int, name string) ([]string, bool) {
		if len(args) < n {
			t.Errorf("%s", missing(name))
			usage(t, 2)
			return nil, false
		}
		got := args[:n]
		args = args[n:]
		return got, true
	}
	for len(args) > 0 {
		a := args[0]
		args = args[1:]
		switch {
		case literal || a == "-" || !strings.HasPrefix(a, "-") || !o.hasProgram && o.file == "" && a[1] != '-' && !isLetter(a[1]):
			if !operand(a) {
				return 2, false
			}
		case a == "--":
			literal = true
		case strings.HasPrefix(a, "--"):
			name := a[2:]
			switch name {
			case "arg", "argjson", "slurpfile", "rawfile", "argfile":
				x, ok := take(2, name)
				if !ok {
					return 2, false
				}
				if !o.bind(m, name, x[0], x[1]) {
					return 2, false
				}
			case "args", "jsonargs":
				rest = name
			case "indent":
				x, ok := take(1, name)
				if !ok {
					return 2, false
				}
				n, ok := count(x[0])
				if !ok || n > 7 {
					if n > 7 {
						t.Errorf("Cannot indent more than 7 characters")
					} else {
						t.Errorf("Cannot indent less than zero")
					}
					usage(t, 2)
					return 2, false
				}
				o.style.indent = strings.Repeat(" ", n)
			case "from-file":
				x, ok := take(1, name)
				if !ok {
					return 2, false
				}
				o.fromFile(x[0])
			case "library-path":
				x, ok := take(1, name)
				if !ok {
					return 2, false
				}
				o.search = append(o.search, x[0])
			default:
				if status, ok := o.flag(t, name, a); !ok {
					return status, false
				}
			}
		default:
			for i := 1; i < len(a); i++ {
				c := a[i : i+1]
				if c == "L" {
					dir := a[i+1:]
					if dir == "" {
						x, ok := take(1, "L")
						if !ok {
							return 2, false
						}
						dir = x[0]
					}
					o.search = append(o.search, dir)
					break
				}
				if c == "f" {
					x, ok := take(1, "f")
					if !ok {
						return 2, false
					}
					o.fromFile(x[0])
					continue
				}
				if status, ok := o.flag(t, long(c), "-"+c); !ok {
					return status, false
				}
			}
		}
	}
	if !o.hasProgram && o.file == "" {
		o.program = "."
	}
	if o.compact {
		o.style.indent = ""
	}
	if o.color > 0 {
		o.style.colors = colors(t.Getenv("JQ_COLORS"))
	}
	o.globals(m)
	return 0, true
}

// fromFile notes where the program is; what was taken for it is a file.
func (o *options) fromFile(name string) {
	if o.hasProgram {
		o.names = append([]string{o.program}, o.names...)
		o.program, o.hasProgram = "", false
	}
	o.file = name
}

func missing(name string) string {
	switch name {
	case "arg":
		return "--arg takes two parameters (e.g. --arg varname value)"
	case "argjson":
		return "--argjson takes two parameters (e.g. --argjson varname text)"
	case "slurpfile", "rawfile":
		return "--" + name + " takes two parameters (e.g. --" + name + " varname filename)"
	case "indent":
		return "--indent takes one parameter"
	case "L", "library-path":
		return "-L takes a parameter: (e.g. -L /search/path or -L/search/path)"
	}
	return "-f takes a parameter"
}

// bind notes a named value.
func (o *options) bind(m *machine, kind, name, text string) bool {
	t := m.t
	var v value
	switch kind {
	case "arg":
		v = clean([]byte(text))
	case "argjson":
		list, err := m.decodeAll([]byte(text))
		if err != nil || len(list) != 1 {
			t.Errorf("Invalid JSON text passed to --argjson")
			usage(t, 2)
			return false
		}
		v = list[0]
	default:
		b, err := command.ReadAll(t, text)
		if err != nil {
			t.Errorf("Bad JSON in --%s %s %s: Could not open %s: %s", kind, name, text, text, vfs.Message(err))
			return false
		}
		if kind == "rawfile" {
			v = clean(b)
			break
		}
		list, err := m.decodeAll(b)
		if err != nil {
			t.Errorf("Bad JSON in --%s %s %s: %s", kind, name, text, err)
			return false
		}
		if kind == "argfile" && len(list) == 1 {
			v = list[0]
		} else {
			v = m.list(list)
		}
	}
	if o.named.find(name) < 0 {
		o.named.put(name, v)
	}
	return true
}

// globals sets the variables that a program begins with.
func (o *options) globals(m *machine) {
	for i, k := range o.named.keys {
		m.globals[k] = o.named.vals[i]
	}
	t := &table{}
	t.put("positional", m.list(o.positional))
	t.put("named", m.made(o.named))
	m.globals["ARGS"] = m.made(t)
	m.globals["__prog_args"] = m.list(o.positional)
	delete(m.globals, "__prog_args")
}

func long(c string) string {
	switch c {
	case "n":
		return "null-input"
	case "R":
		return "raw-input"
	case "s":
		return "slurp"
	case "c":
		return "compact-output"
	case "r":
		return "raw-output"
	case "j":
		return "join-output"
	case "a":
		return "ascii-output"
	case "S":
		return "sort-keys"
	case "C":
		return "color-output"
	case "M":
		return "monochrome-output"
	case "e":
		return "exit-status"
	case "h":
		return "help"
	case "V":
		return "version"
	}
	return ""
}

// flag takes an option without argument.
func (o *options) flag(t *kernel.Task, name, spelt string) (status int, ok bool) {
	switch name {
	case "null-input":
		o.null = true
	case "raw-input":
		o.raw = true
	case "slurp":
		o.slurp = true
	case "compact-output":
		o.compact = true
	case "raw-output":
		o.text = true
	case "raw-output0":
		o.text, o.nul = true, true
	case "join-output":
		o.text, o.joined = true, true
	case "ascii-output":
		o.style.ascii = true
	case "sort-keys":
		o.style.sort = true
	case "color-output":
		o.color = 1
	case "monochrome-output":
		o.color = -1
	case "tab":
		o.style.indent = "\t"
	case "unbuffered":
		o.unbuffered = true
	case "stream", "stream-errors":
		o.stream = true
	case "seq":
		o.seq = true
	case "exit-status":
		o.exit = true
	case "help":
		help(t)
		return 0, false
	case "version":
		fmt.Fprintln(t.Out(), "jq-1.7.1")
		return 0, false
	case "build-configuration":
		fmt.Fprintln(t.Out(), "paddock")
		return 0, false
	default:
		t.Errorf("Unknown option: %s", spelt)
		usage(t, 2)
		return 2, false
	}
	return 0, true
}

func usage(t *kernel.Task, fd int) {
	name := t.Name()
	_, _ = t.Write(fd, []byte("Usage:\t"+name+" [OPTIONS] FILTER [FILES...]\n\t"+name+" [OPTIONS] -f FILE [FILES...]\n\t"+
		name+" [OPTIONS] --args FILTER [ARGUMENTS...]\n\t"+name+" [OPTIONS] --jsonargs FILTER [JSON_VALUES...]\n"+
		"Use "+name+" --help for help with command-line options,\nor see the jq manpage, or online docs  at https://jqlang.github.io/jq\n"))
}

func help(t *kernel.Task) {
	w := t.Out()
	fmt.Fprintf(w, "Usage:\t%s [OPTIONS] FILTER [FILES...]\n\t%[1]s [OPTIONS] -f FILE [FILES...]\n", t.Name())
	fmt.Fprint(w, `
Reads JSON values, gives each of them to the filter, and writes its results.

  -n, --null-input          use null as the single input value
  -R, --raw-input           read each line as a string
  -s, --slurp               read all inputs into an array
  -c, --compact-output      write each result on one line
  -r, --raw-output          write strings without quotes
      --raw-output0         -r, with NUL behind each result
  -j, --join-output         -r, with nothing behind each result
  -a, --ascii-output        escape characters that are not ASCII
  -S, --sort-keys           sort the keys of objects
  -C, --color-output        color JSON
  -M, --monochrome-output   do not
      --tab                 indent by tabs
      --indent n            indent by n spaces (at most 7)
      --unbuffered          write out each result at once
      --stream              read as a stream of paths and leaves
      --seq                 RFC 7464: a record separator before each result
  -f, --from-file file      read the filter from a file
  -L directory              where modules are searched
  -e, --exit-status         the status tells of the last result
      --arg name value      set $name to a string
      --argjson name value  set $name to a JSON value
      --slurpfile name file set $name to an array of a file's values
      --rawfile name file   set $name to a file's text
      --args                what follows are strings for $ARGS.positional
      --jsonargs            what follows are values for $ARGS.positional
  -h, --help                show this help
  -V, --version             show the version
`)
}
