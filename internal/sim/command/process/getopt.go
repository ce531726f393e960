package process

import (
	"strings"

	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
)

var getoptSpec = &command.Spec{
	Name: "getopt", Synopsis: "[options] [--] <optstring> <parameters>", Exit: 2, Ordered: true, About: "Parse command options.",
	Options: []command.Option{
		{Short: 'a', Long: "alternative", Help: "allow long options starting with single -"},
		{Short: 'l', Long: "longoptions", Arg: command.Required, Name: "longopts", Help: "the long options to be recognized"},
		{Short: 'n', Long: "name", Arg: command.Required, Name: "progname", Help: "the name under which errors are reported"},
		{Short: 'o', Long: "options", Arg: command.Required, Name: "optstring", Help: "the short options to be recognized"},
		{Short: 'q', Long: "quiet", Help: "disable error reporting by getopt(3)"},
		{Short: 'Q', Long: "quiet-output", Help: "no normal output"},
		{Short: 's', Long: "shell", Arg: command.Required, Name: "shell", Help: "set quoting conventions to those of <shell>"},
		{Short: 'T', Long: "test", Help: "test for getopt(1) version"},
		{Short: 'u', Long: "unquoted", Help: "do not quote the output"},
	},
}

// A splitter takes the arguments of a script apart.
type splitter struct {
	t           *kernel.Task
	name        string
	short       string
	long        map[string]int // how many colons follow
	names       []string
	alternative bool
	silent      bool
	plain       bool // not quoted
	tcsh        bool
	out         strings.Builder
	bad         bool
}

func runGetopt(t *kernel.Task) int {
	args := t.Args[1:]
	s := &splitter{t: t, name: "getopt", long: map[string]int{}}
	if len(args) == 0 {
		t.Errorf("missing optstring argument\nTry 'getopt --help' for more information.")
		return 2
	}
	if args[0] == "" || args[0][0] != '-' && args[0][0] != '+' {
		s.plain, s.short = true, args[0]
		return s.run(args[1:], false)
	}
	a, status, ok := getoptSpec.Parse(t)
	if !ok {
		return status
	}
	given, quiet := false, false
	for _, f := range a.Flags {
		switch f.Key {
		case "a":
			s.alternative = true
		case "l":
			for n := range strings.FieldsFuncSeq(f.Value, func(r rune) bool { return strings.ContainsRune(", \t\n", r) }) {
				bare := strings.TrimRight(n, ":")
				s.long[bare] = min(len(n)-len(bare), 2)
				s.names = append(s.names, bare)
			}
		case "n":
			s.name = f.Value
		case "o":
			s.short, given = f.Value, true
		case "q":
			s.silent = true
		case "Q":
			quiet = true
		case "s":
			switch f.Value {
			case "sh", "bash":
			case "csh", "tcsh":
				s.tcsh = true
			default:
				t.Errorf("unknown shell after -s or --shell argument\nTry 'getopt --help' for more information.")
				return 2
			}
		case "T":
			return 4
		case "u":
			s.plain = true
		}
	}
	rest := a.Operands
	if !given {
		if len(rest) == 0 {
			t.Errorf("missing optstring argument\nTry 'getopt --help' for more information.")
			return 2
		}
		s.short, rest = rest[0], rest[1:]
	}
	return s.run(rest, quiet)
}

func (s *splitter) put(words ...string) {
	for i, w := range words {
		s.out.WriteByte(' ')
		if i == 0 && strings.HasPrefix(w, "-") {
			s.out.WriteString(w)
			continue
		}
		s.out.WriteString(s.quote(w))
	}
}

func (s *splitter) quote(w string) string {
	if s.plain {
		return w
	}
	var b strings.Builder
	b.WriteByte('\'')
	for i := range len(w) {
		switch c := w[i]; {
		case c == '\'':
			b.WriteString(`'\''`)
		case s.tcsh && c == '\\':
			b.WriteString(`\\`)
		case s.tcsh && c == '!':
			b.WriteString(`'\!'`)
		case s.tcsh && c == '\n':
			b.WriteString(`\n`)
		default:
			b.WriteByte(c)
		}
	}
	return b.String() + "'"
}

func (s *splitter) complain(text string) {
	s.bad = true
	if !s.silent {
		_ = s.t.Flush() // the end of the program tells of it
		_, _ = s.t.Write(2, []byte(s.name+": "+text+"\n"))
	}
}

func (s *splitter) run(args []string, quiet bool) int {
	stop, inOrder := s.t.Getenv("POSIXLY_CORRECT") != "", false
	switch {
	case strings.HasPrefix(s.short, "+"):
		stop, s.short = true, s.short[1:]
	case strings.HasPrefix(s.short, "-"):
		inOrder, s.short = true, s.short[1:]
	}
	var left []string
	for len(args) > 0 {
		s.t.Step(1)
		a := args[0]
		args = args[1:]
		switch {
		case a == "--":
			left, args = append(left, args...), nil
		case strings.HasPrefix(a, "--"), s.alternative && len(a) > 2 && a[0] == '-' && s.matches(strings.SplitN(a[1:], "=", 2)[0]) != nil:
			args = s.longOption(a, args)
		case len(a) > 1 && a[0] == '-':
			args = s.shorts(a[1:], args)
		case inOrder:
			s.out.WriteString(" " + s.quote(a))
		case stop:
			left, args = append(append(left, a), args...), nil
		default:
			left = append(left, a)
		}
	}
	if !quiet {
		s.out.WriteString(" --")
		for _, l := range left {
			s.out.WriteString(" " + s.quote(l))
		}
		say(s.t, s.out.String())
	}
	if s.bad {
		return 1
	}
	return 0
}

func (s *splitter) matches(name string) []string {
	var found []string
	for _, n := range s.names {
		if n == name {
			return []string{n}
		}
		if strings.HasPrefix(n, name) {
			found = append(found, n)
		}
	}
	return found
}

func (s *splitter) longOption(a string, args []string) []string {
	dashes := "--"
	if !strings.HasPrefix(a, "--") {
		dashes = "-"
	}
	name, value, given := strings.Cut(a[len(dashes):], "=")
	found := s.matches(name)
	switch {
	case len(found) == 0:
		s.complain("unrecognized option '" + dashes + name + "'")
		return args
	case len(found) > 1:
		text := "option '" + dashes + name + "' is ambiguous; possibilities:"
		for _, n := range found {
			text += " '" + dashes + n + "'"
		}
		s.complain(text)
		return args
	}
	full := "--" + found[0]
	switch s.long[found[0]] {
	case 0:
		if given {
			s.complain("option '" + dashes + found[0] + "' doesn't allow an argument")
			return args
		}
		s.put(full)
	case 1:
		if !given {
			if len(args) == 0 {
				s.complain("option '" + dashes + found[0] + "' requires an argument")
				return args
			}
			value, args = args[0], args[1:]
		}
		s.put(full, value)
	default:
		s.put(full, value)
	}
	return args
}

func (s *splitter) shorts(a string, args []string) []string {
	for i := range len(a) {
		c := a[i]
		at := strings.IndexByte(s.short, c)
		if at < 0 || c == ':' {
			s.complain("invalid option -- '" + string(c) + "'")
			continue
		}
		rest := s.short[at+1:]
		switch {
		case strings.HasPrefix(rest, "::"):
			s.put("-"+string(c), a[i+1:])
			return args
		case strings.HasPrefix(rest, ":"):
			switch {
			case i+1 < len(a):
				s.put("-"+string(c), a[i+1:])
			case len(args) > 0:
				s.put("-"+string(c), args[0])
				args = args[1:]
			default:
				s.complain("option requires an argument -- '" + string(c) + "'")
			}
			return args
		}
		s.put("-" + string(c))
	}
	return args
}
