package shell

import (
	"slices"
	"strconv"
	"strings"

	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
	"github.com/paddock-sandbox/paddock/internal/sim/shell/expand"
	"github.com/paddock-sandbox/paddock/internal/sim/shell/parse"
	"github.com/paddock-sandbox/paddock/internal/sim/shell/variable"
)

// typed is what is being completed.
type typed struct {
	command        string
	word, previous string
	words          []string
	index          int // of the word
	line           string
	point          int

	paid int // what the task was charged for candidates
}

// candidates gives what a word can become.
func (s *Shell) candidates(c *completion, w *typed) ([]string, error) {
	var list []string
	for _, name := range tried {
		if c.acts(name) {
			list = append(list, s.act(name, w.word)...)
		}
	}
	if c.has['G'] {
		names, err := s.expandWord(c.globpat, false)
		if err != nil {
			return nil, err
		}
		for _, n := range names {
			if _, err := s.t.View.Lstat(n); err == nil {
				list = append(list, n)
			}
		}
	}
	if c.has['W'] {
		words, err := s.wordList(c.words)
		if err != nil {
			return nil, err
		}
		for _, x := range words {
			if strings.HasPrefix(x, w.word) {
				list = append(list, x)
			}
		}
	}
	if c.has['F'] {
		list = append(list, s.byFunction(c, w)...)
		if s.flow != flowNone {
			return nil, nil
		}
	}
	if c.has['C'] {
		lines, err := s.byCommand(c, w)
		if err != nil {
			return nil, err
		}
		list = append(list, lines...)
	}
	if c.has['X'] && c.filter != "" {
		var err error
		if list, err = s.filter(list, c.filter, w.word); err != nil {
			return nil, err
		}
	}
	if c.prefix != "" || c.suffix != "" {
		for i := range list {
			s.t.Grow(len(c.prefix) + len(list[i]) + len(c.suffix))
			w.paid += len(c.prefix) + len(list[i]) + len(c.suffix)
			list[i] = c.prefix + list[i] + c.suffix
		}
	}
	if len(list) == 0 && c.option("dirnames") {
		list = s.fileNames(w.word, true)
	}
	if c.option("plusdirs") {
		list = append(list, s.fileNames(w.word, true)...)
	}
	if len(list) == 0 && (c.option("default") || c.option("bashdefault")) {
		list = s.fileNames(w.word, false)
	}
	return list, nil
}

// tried are the actions in the order in which bash tries them.
var tried = [...]string{
	"alias", "arrayvar", "binding", "builtin", "disabled", "enabled", "export", "function", "helptopic", "hostname",
	"job", "keyword", "running", "setopt", "shopt", "signal", "stopped", "variable",
	"command", "file", "user", "group", "service", "directory",
}

func (c *completion) acts(name string) bool {
	for i, on := range c.actions {
		if completionActions[i].name == name {
			return on
		}
	}
	return false
}

// act gives what one action completes a word to.
func (s *Shell) act(name, word string) []string {
	var all []string
	switch name {
	case "file", "directory":
		return s.fileNames(word, name == "directory")
	case "command":
		if strings.Contains(word, "/") {
			return s.fileNames(word, false)
		}
		all = s.commandNames()
		slices.Sort(all)
		return beginning(slices.Compact(all), word)
	case "alias":
		for n := range s.aliases {
			all = append(all, n)
		}
	case "arrayvar", "variable", "export":
		for _, n := range s.vars.Names() {
			if v := s.vars.Lookup(n); v != nil && (name == "variable" || v.Is(variable.Export) && name == "export" || v.Is(variable.Arrays) && name == "arrayvar") {
				all = append(all, n)
			}
		}
	case "builtin", "enabled", "disabled":
		for _, n := range strings.Fields(builtinNames) {
			if name == "builtin" || s.disabled[n] == (name == "disabled") {
				all = append(all, n)
			}
		}
	case "function":
		all = s.functionNames()
	case "group", "user":
		return beginning(s.accounts("/etc/"+map[string]string{"group": "group", "user": "passwd"}[name]), word)
	case "binding":
		all = strings.Fields(readlineNames)
	case "keyword":
		return beginning(keywords(), word)
	case "helptopic":
		for _, t := range topics() {
			all = append(all, t.name)
		}
	case "hostname":
		all = s.hosts()
	case "job", "running", "stopped":
		return beginning(s.jobNames(name), word)
	case "setopt", "shopt":
		all = optionList(name == "setopt")
	case "signal":
		for _, n := range strings.Fields(signalNames) {
			all = append(all, "SIG"+n)
		}
		return beginning(all, word)
	}
	all = slices.Clone(all)
	slices.Sort(all)
	return beginning(all, word)
}

func keywords() []string {
	return strings.Fields("if then else elif fi case esac for select while until do done in function time { } ! [[ ]] coproc")
}

// beginning keeps the names that begin with a word.
func beginning(names []string, word string) []string {
	var list []string
	for _, n := range names {
		if strings.HasPrefix(n, word) {
			list = append(list, n)
		}
	}
	return list
}

// accounts gives the names of a file like /etc/passwd.
func (s *Shell) accounts(file string) []string {
	text, err := s.readFile(file)
	if err != nil {
		return nil
	}
	var names []string
	for l := range strings.Lines(string(text)) {
		if n, _, ok := strings.Cut(l, ":"); ok {
			names = append(names, n)
		}
	}
	return names
}

// hosts gives the names in /etc/hosts.
func (s *Shell) hosts() []string {
	text, err := s.readFile("/etc/hosts")
	if err != nil {
		return nil
	}
	var names []string
	for l := range strings.Lines(string(text)) {
		l, _, _ = strings.Cut(l, "#")
		if f := strings.Fields(l); len(f) > 1 {
			names = append(names, f[1:]...)
		}
	}
	return names
}

// jobNames gives the first words of jobs.
func (s *Shell) jobNames(kind string) []string {
	var names []string
	for _, j := range s.jobs.list {
		if f := strings.Fields(j.text); !j.hidden && len(f) > 0 && (kind == "job" || j.task.Stopped() == (kind == "stopped")) {
			names = append(names, f[0])
		}
	}
	return names
}

// wordList splits the words of -W at what IFS holds, and expands each.
func (s *Shell) wordList(text string) ([]string, error) {
	ifs, ok := s.vars.Get("IFS")
	if !ok {
		ifs = " \t\n"
	}
	var list []string
	for _, piece := range cutWords(text, ifs) {
		words, err := s.expandWord(piece, true)
		if err != nil {
			return nil, err
		}
		list = append(list, words...)
	}
	return list, nil
}

// cutWords splits at separators that are not quoted or within an expansion.
func cutWords(text, ifs string) []string {
	var list []string
	start, level, quote := 0, 0, byte(0)
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\\' && quote != '\'':
			i++
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '\'' || c == '"' || c == '`':
			quote = c
		case c == '$' && i+1 < len(text) && (text[i+1] == '(' || text[i+1] == '{'):
			level++
			i++
		case level > 0 && c == '(':
			level++
		case level > 0 && (c == ')' || c == '}'):
			level--
		case level == 0 && strings.IndexByte(ifs, c) >= 0:
			if i > start {
				list = append(list, text[start:i])
			}
			start = i + 1
		}
	}
	if start < len(text) {
		list = append(list, text[start:])
	}
	return list
}

// expandWord expands a text that is one word. With literal, names of files are
// not matched.
func (s *Shell) expandWord(text string, literal bool) ([]string, error) {
	w := parse.OneWord(text, s.reading(s.line))
	if w == nil {
		return nil, &expand.Error{Kind: expand.Bad, Text: text + ": bad substitution"}
	}
	old := s.flags.NoGlob
	s.flags.NoGlob = old || literal
	defer func() { s.flags.NoGlob = old }()
	return s.Expander().Fields(nil, expand.Compile(w, expand.Field))
}

// byFunction runs the function of a completion and gives what it left in
// COMPREPLY.
func (s *Shell) byFunction(c *completion, w *typed) []string {
	f, ok := s.funcs[c.function]
	if !ok {
		s.complain("completion: function `%s' not found", c.function)
		return nil
	}
	set := func(name, value string) {
		if err := s.vars.Set(name, value); err != nil {
			s.complain("%s", err)
		}
	}
	set("COMP_LINE", w.line)
	set("COMP_POINT", strconv.Itoa(w.point))
	set("COMP_TYPE", "0")
	set("COMP_KEY", "0")
	set("COMP_CWORD", strconv.Itoa(w.index))
	if err := s.vars.SetValues("COMP_WORDS", w.words, 0, true); err != nil {
		s.complain("%s", err)
	}
	if _, ok := s.vars.Get("COMP_WORDBREAKS"); !ok {
		set("COMP_WORDBREAKS", " \t\n\"'@><=;|&(:")
	}
	outer := s.completing
	changed := *c
	s.completing = &changed
	s.call(f, []string{c.function, w.command, w.word, w.previous})
	*c = changed
	s.completing = outer
	for _, n := range []string{"COMP_LINE", "COMP_POINT", "COMP_TYPE", "COMP_KEY", "COMP_CWORD", "COMP_WORDS"} {
		_ = s.vars.Unset(n) // it was set here
	}
	var list []string
	if v, _ := s.vars.Var("COMPREPLY"); v != nil && v.IsSet() {
		if v.Array() != nil {
			list = slices.Clone(v.Array().Values())
		} else if text, ok := v.Scalar(); ok {
			list = []string{text}
		}
	}
	_ = s.vars.Unset("COMPREPLY") // it need not be there
	return list
}

// byCommand runs the command of a completion and gives the lines that it
// writes.
func (s *Shell) byCommand(c *completion, w *typed) ([]string, error) {
	text := c.command
	for _, a := range []string{w.command, w.word, w.previous} {
		text += " '" + strings.ReplaceAll(a, "'", `'\''`) + "'"
	}
	var list []string
	_, err := s.capture(func(sub *Shell) int { return sub.runText(text, s.line) }, func(out []byte) {
		for l := range strings.Lines(string(out)) {
			if l = strings.TrimSuffix(l, "\n"); l != "" {
				list = append(list, l)
			}
		}
	})
	return list, err
}

// filter takes away what a pattern matches, or with "!" what it does not.
func (s *Shell) filter(list []string, pat, word string) ([]string, error) {
	pat, keep := strings.CutPrefix(pat, "!")
	b := kernel.NewText(s.t)
	defer b.Free()
	for i := 0; i < len(pat); i++ {
		switch c := pat[i]; {
		case c == '\\' && i+1 < len(pat):
			i++
			if pat[i] != '&' {
				b.Byte(c)
			}
			b.Byte(pat[i])
		case c == '&':
			b.WriteString(word)
		default:
			b.Byte(c)
		}
	}
	var out []string
	for _, x := range list {
		ok, err := s.Expander().Match(b.String(), x)
		if err != nil {
			return nil, err
		}
		if ok == keep {
			out = append(out, x)
		}
	}
	return out, nil
}

// commandNames lists everything that can be a command.
func (s *Shell) commandNames() []string {
	list := append(keywords(), strings.Fields(builtinNames)...)
	list = append(list, s.functionNames()...)
	for n := range s.aliases {
		list = append(list, n)
	}
	p, _ := s.vars.Get("PATH")
	for _, dir := range strings.Split(p, ":") {
		names, err := s.t.View.ReadDir(dir)
		if err != nil {
			continue
		}
		s.t.Traverse(len(names))
		for _, e := range names {
			list = append(list, e.Name)
		}
	}
	return list
}

// fileNames lists files whose names begin with a word.
func (s *Shell) fileNames(word string, dirs bool) []string {
	dir, base := ".", word
	lead := ""
	if i := strings.LastIndexByte(word, '/'); i >= 0 {
		lead, base = word[:i+1], word[i+1:]
		dir = lead
	}
	names, err := s.t.View.ReadDir(dir)
	if err != nil {
		return nil
	}
	s.t.Traverse(len(names))
	var list []string
	for _, e := range names {
		if !strings.HasPrefix(e.Name, base) {
			continue
		}
		if dirs {
			if i, err := s.t.View.Stat(lead + e.Name); err != nil || !i.IsDir() {
				continue
			}
		}
		list = append(list, lead+e.Name)
	}
	return list
}
