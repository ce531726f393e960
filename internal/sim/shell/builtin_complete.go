package shell

import (
	"maps"
	"slices"
	"strings"

	"github.com/paddock-sandbox/paddock/internal/sim/quote"
)

// A completion says how the arguments of a command are completed. It does not
// change once it is kept.
type completion struct {
	options [len(completionOptions)]bool
	actions [len(completionActions)]bool

	globpat, words, prefix, suffix, filter, command, function string
	has                                                       [256]bool // which of these were given, by letter
}

// completionOptions are what follows -o.
var completionOptions = [...]string{
	"bashdefault", "default", "dirnames", "filenames", "noquote", "nosort", "nospace", "plusdirs",
}

// completionActions are what follows -A, in the order in which they are tried
// and shown; those that have a letter come first.
var completionActions = [...]struct {
	name   string
	letter byte
}{
	{"alias", 'a'},
	{"builtin", 'b'},
	{"command", 'c'},
	{"directory", 'd'},
	{"export", 'e'},
	{"file", 'f'},
	{"group", 'g'},
	{"job", 'j'},
	{"keyword", 'k'},
	{"service", 's'},
	{"user", 'u'},
	{"variable", 'v'},
	{"arrayvar", 0},
	{"binding", 0},
	{"disabled", 0},
	{"enabled", 0},
	{"function", 0},
	{"helptopic", 0},
	{"hostname", 0},
	{"running", 0},
	{"setopt", 0},
	{"shopt", 0},
	{"signal", 0},
	{"stopped", 0},
}

const (
	completionUsage = "[-abcdefgjksuv] %s[-o option] [-A action] [-G globpat] [-W wordlist] " +
		"[-F function] [-C command] [-X filterpat] [-P prefix] [-S suffix] [%s]"
	compoptUsage = "compopt: usage: compopt [-o|+o option] [-DEI] [name ...]"
)

// A specification is what complete and compgen were told.
type specification struct {
	completion
	given        bool // anything that completes
	show, remove bool
	targets      []string // -D, -E and -I
	rest         []string
}

// specify reads the arguments of complete and compgen.
func (s *Shell) specify(args []string) (p specification, ok bool) {
	letters := "o:A:G:W:F:C:X:P:S:abcdefgjksuv"
	usage := strings.ReplaceAll(strings.Replace(completionUsage, "%s", "", 1), "%s", "word")
	if args[0] == "complete" {
		letters += "prDEI"
		usage = strings.ReplaceAll(strings.Replace(completionUsage, "%s", "[-pr] [-DEI] ", 1), "%s", "name ...")
	}
	o := getopt{s: s, args: args, spec: letters}
	for c := o.next(); c != 0; c = o.next() {
		p.given = true
		switch c {
		case '?':
			o.usage(args[0] + ": usage: " + args[0] + " " + usage)
			return p, false
		case 'p':
			p.show = true
		case 'r':
			p.remove = true
		case 'D', 'E', 'I':
			p.targets = append(p.targets, "-"+string(c))
		case 'o':
			i := slices.Index(completionOptions[:], o.arg)
			if i < 0 {
				s.Warn("%s: %s: invalid option name", args[0], o.arg)
				return p, false
			}
			p.options[i] = true
		case 'A':
			if !p.action(func(i int) bool { return completionActions[i].name == o.arg }) {
				s.Warn("%s: %s: invalid action name", args[0], o.arg)
				return p, false
			}
		case 'G', 'W', 'F', 'C', 'X', 'P', 'S':
			p.has[c] = true
			*p.text(c) = o.arg
		default:
			p.action(func(i int) bool { return completionActions[i].letter == c })
		}
	}
	p.rest = o.rest()
	return p, true
}

// action turns an action on.
func (c *completion) action(is func(i int) bool) bool {
	for i := range completionActions {
		if is(i) {
			c.actions[i] = true
			return true
		}
	}
	return false
}

// text gives what is kept of the option with that letter.
func (c *completion) text(letter byte) *string {
	switch letter {
	case 'G':
		return &c.globpat
	case 'W':
		return &c.words
	case 'P':
		return &c.prefix
	case 'S':
		return &c.suffix
	case 'X':
		return &c.filter
	case 'C':
		return &c.command
	}
	return &c.function
}

func (c *completion) option(name string) bool {
	return c.options[slices.Index(completionOptions[:], name)]
}

func biComplete(s *Shell, args []string) int {
	p, ok := s.specify(args)
	if !ok {
		return 2
	}
	names := p.rest
	if len(p.targets) > 0 {
		names = p.targets[:1]
	}
	switch {
	case p.remove:
		return s.forgetCompletions(names)
	case p.show || !p.given && len(names) == 0:
		return s.showCompletions(names)
	case len(names) == 0:
		o := getopt{s: s}
		return o.usage("complete: usage: complete " +
			strings.ReplaceAll(strings.Replace(completionUsage, "%s", "[-pr] [-DEI] ", 1), "%s", "name ..."))
	}
	m := make(map[string]*completion, len(s.completions)+len(names))
	maps.Copy(m, s.completions)
	for _, n := range names {
		m[n] = &p.completion
	}
	s.completions = m
	s.t.Grow(64 + len(p.words))
	return 0
}

func (s *Shell) forgetCompletions(names []string) int {
	if len(names) == 0 {
		s.completions = nil
		return 0
	}
	m := maps.Clone(s.completions)
	st := 0
	for _, n := range names {
		if _, ok := m[n]; !ok {
			s.Warn("complete: %s: no completion specification", n)
			st = 1
		}
		delete(m, n)
	}
	s.completions = m
	return st
}

func (s *Shell) showCompletions(names []string) int {
	if len(names) == 0 {
		names = slices.Sorted(maps.Keys(s.completions))
	}
	st := 0
	for _, n := range names {
		c, ok := s.completions[n]
		if !ok {
			s.complain("complete: %s: no completion specification", n)
			st = 1
			continue
		}
		s.print("complete " + c.String() + completed(n) + "\n")
	}
	return st
}

// completed writes the name of a command as complete takes it.
func completed(name string) string {
	if strings.ContainsAny(name, " \t\n'\"\\$`;&|<>()*?[#~!{}") {
		return quote.Single(name)
	}
	return name
}

// String returns the options of complete that make c.
func (c *completion) String() string {
	var b strings.Builder
	for i, on := range c.options {
		if on {
			b.WriteString("-o " + completionOptions[i] + " ")
		}
	}
	for i, on := range c.actions {
		switch a := completionActions[i]; {
		case on && a.letter != 0:
			b.WriteString("-" + string(a.letter) + " ")
		case on:
			b.WriteString("-A " + a.name + " ")
		}
	}
	for _, l := range []byte("GWPSXC") {
		if c.has[l] {
			b.WriteString("-" + string(l) + " " + quote.Single(*c.text(l)) + " ")
		}
	}
	if c.has['F'] {
		b.WriteString("-F " + c.function + " ")
	}
	return b.String()
}

func biCompopt(s *Shell, args []string) int {
	var on, off [len(completionOptions)]bool
	var names []string
	o := getopt{s: s, args: args, spec: "o:DEI", plus: true}
	for c := o.next(); c != 0; c = o.next() {
		switch c {
		case 'o':
			i := slices.Index(completionOptions[:], o.arg)
			if i < 0 {
				s.Warn("compopt: %s: invalid option name", o.arg)
				return 2
			}
			on[i], off[i] = o.sign == '-', o.sign == '+'
		case 'D', 'E', 'I':
			names = append(names, "-"+string(c))
		default:
			return o.usage(compoptUsage)
		}
	}
	names = append(names, o.rest()...)
	if len(names) == 0 {
		if s.completing == nil {
			s.Warn("compopt: not currently executing completion function")
			return 1
		}
		s.completing.change(on, off)
		return 0
	}
	st := 0
	for _, n := range names {
		c, ok := s.completions[n]
		if !ok {
			s.complain("compopt: %s: no completion specification", n)
			st = 1
			continue
		}
		if on == off { // neither says anything
			s.print("compopt " + c.optionText() + completed(n) + "\n")
			continue
		}
		changed := *c
		changed.change(on, off)
		s.completions = maps.Clone(s.completions)
		s.completions[n] = &changed
	}
	return st
}

func (c *completion) change(on, off [len(completionOptions)]bool) {
	for i := range c.options {
		c.options[i] = c.options[i] && !off[i] || on[i]
	}
}

func (c *completion) optionText() string {
	text := ""
	for i, on := range c.options {
		sign := "+o "
		if on {
			sign = "-o "
		}
		text += sign + completionOptions[i] + " "
	}
	return text
}

func biCompgen(s *Shell, args []string) int {
	p, ok := s.specify(args)
	if !ok {
		return 2
	}
	if !p.given {
		return 0
	}
	word := ""
	if len(p.rest) > 0 {
		word = p.rest[0]
	}
	if p.has['F'] {
		s.complain("compgen: warning: -F option may not work as you expect")
	}
	if p.has['C'] {
		s.complain("compgen: warning: -C option may not work as you expect")
	}
	w := &typed{command: "compgen", word: word, index: -1}
	list, err := s.candidates(&p.completion, w)
	defer func() { s.t.Shrink(w.paid) }()
	if s.flow != flowNone {
		return s.status
	}
	if err != nil {
		return s.wordError(err)
	}
	for _, x := range list {
		s.print(x + "\n")
	}
	return status(len(list) > 0)
}
