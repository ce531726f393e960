package shell

import (
	"sort"
	"strings"

	"github.com/paddock-sandbox/paddock/internal/driver/sim/quote"
)

// maxHistory is how many commands history keeps.
const maxHistory = 500

func (s *Shell) addHistory(text string) {
	list := append(s.history[:len(s.history):len(s.history)], text)
	if len(list) > maxHistory {
		list = list[len(list)-maxHistory:]
	}
	s.history = list
}

func biHistory(s *Shell, args []string) int {
	o := getopt{s: s, args: args, spec: "acd:nrwps"}
	for c := o.next(); c != 0; c = o.next() {
		switch c {
		case 'c':
			s.history = nil
		case 'd':
			n, ok := number(o.arg)
			if n < 0 {
				n += len(s.history) + 1
			}
			if !ok || n < 1 || n > len(s.history) {
				s.Warn("history: %s: history position out of range", o.arg)
				return 1
			}
			s.history = append(s.history[:n-1:n-1], s.history[n:]...)
			return 0
		case 's':
			s.addHistory(strings.Join(o.rest(), " "))
			return 0
		case 'p':
			for _, a := range o.rest() {
				s.print(a + "\n")
			}
			return 0
		case 'a', 'n', 'r', 'w':
			return s.historyFile(c, o.rest())
		default:
			return o.usage("history: usage: history [-c] [-d offset] [n] or history -anrw [filename] or history -ps arg [arg...]")
		}
	}
	rest := o.rest()
	from := 0
	if len(rest) > 0 {
		n, ok := number(rest[0])
		if !ok {
			s.Warn("history: %s: numeric argument required", rest[0])
			return 1
		}
		if len(rest) > 1 {
			s.Warn("history: too many arguments")
			return 1
		}
		from = max(0, len(s.history)-max(n, 0))
	}
	for i := from; i < len(s.history); i++ {
		s.printf("%5d  %s\n", i+1, s.history[i])
	}
	return 0
}

// historyFile reads or writes the file of commands.
func (s *Shell) historyFile(how byte, rest []string) int {
	file := ""
	if len(rest) > 0 {
		file = rest[0]
	} else {
		file, _ = s.vars.Get("HISTFILE")
	}
	if file == "" {
		return 0
	}
	switch how {
	case 'r', 'n':
		text, err := s.readFile(file)
		if err != nil {
			s.Warn("history: %s: %s", file, message(err))
			return 1
		}
		for _, l := range strings.Split(strings.TrimSuffix(string(text), "\n"), "\n") {
			if l != "" {
				s.addHistory(l)
			}
		}
	default:
		if err := s.writeFile(file, strings.Join(s.history, "\n")+"\n", how == 'a'); err != nil {
			s.Warn("history: %s: %s", file, message(err))
			return 1
		}
	}
	return 0
}

func biFc(s *Shell, args []string) int {
	list, noNumbers, reverse := false, false, false
	o := getopt{s: s, args: args, spec: "e:lnrs"}
	for c := o.next(); c != 0; c = o.next() {
		switch c {
		case 'l':
			list = true
		case 'n':
			noNumbers = true
		case 'r':
			reverse = true
		case 's', 'e':
		default:
			return o.usage("fc: usage: fc [-e ename] [-lnr] [first] [last] or fc -s [pat=rep] [command]")
		}
	}
	if !list {
		if len(s.history) == 0 {
			s.Warn("fc: no command found")
			return 1
		}
		text := s.history[len(s.history)-1]
		s.line0(text)
		return s.runText(text, s.line)
	}
	from, to := max(0, len(s.history)-16), len(s.history)
	rest := o.rest()
	if len(rest) > 0 {
		if n, ok := number(rest[0]); ok && n > 0 {
			from = min(n-1, len(s.history))
		} else if ok {
			from = max(0, len(s.history)+n)
		}
	}
	if len(rest) > 1 {
		if n, ok := number(rest[1]); ok && n > 0 {
			to = min(n, len(s.history))
		}
	}
	line := func(i int) {
		if noNumbers {
			s.print("\t " + s.history[i] + "\n")
		} else {
			s.printf("%d\t %s\n", i+1, s.history[i])
		}
	}
	for i := from; i < to; i++ {
		if reverse {
			line(to - 1 - (i - from))
		} else {
			line(i)
		}
	}
	return 0
}

func biBind(s *Shell, _ []string) int {
	if !s.interactive {
		s.Warn("bind: warning: line editing not enabled")
	}
	return 0
}

func biComplete(s *Shell, args []string) int {
	var show, remove bool
	var words []string
	rest := args[1:]
	var spec []string
	for i := 0; i < len(rest); i++ {
		a := rest[i]
		switch {
		case a == "-p":
			show = true
		case a == "-r":
			remove = true
		case a == "--":
		case len(a) == 2 && a[0] == '-' && strings.IndexByte("oAGWFCXPS", a[1]) >= 0:
			if i+1 >= len(rest) {
				s.Warn("complete: %s: option requires an argument", a)
				return 2
			}
			i++
			value := rest[i]
			if a == "-W" || a == "-C" || a == "-X" {
				value = quote.Single(value)
			}
			spec = append(spec, a, value)
		case len(a) > 1 && a[0] == '-':
			for _, c := range []byte(a[1:]) {
				if strings.IndexByte("abcdefgjksuvDEI", c) < 0 {
					s.Warn("complete: -%c: invalid option", c)
					s.line0("complete: usage: complete [-abcdefgjksuv] [-pr] [-DEI] [-o option] [-A action] [-G globpat] [-W wordlist] [-F function] [-C command] [-X filterpat] [-P prefix] [-S suffix] [name ...]")
					return 2
				}
			}
			spec = append(spec, a)
		default:
			words = append(words, a)
		}
	}
	m := make(map[string]string, len(s.completions)+1)
	for k, v := range s.completions {
		m[k] = v
	}
	st := 0
	switch {
	case remove:
		if len(words) == 0 {
			m = nil
		}
		for _, w := range words {
			if _, ok := m[w]; !ok {
				s.Warn("complete: %s: no completion specification", w)
				st = 1
			}
			delete(m, w)
		}
	case show || len(words) == 0 && len(spec) == 0:
		if len(words) == 0 {
			for k := range m {
				words = append(words, k)
			}
			sort.Strings(words)
		}
		for _, w := range words {
			v, ok := m[w]
			if !ok {
				s.Warn("complete: %s: no completion specification", w)
				st = 1
				continue
			}
			s.print("complete " + v + w + "\n")
		}
	default:
		text := ""
		for _, x := range spec {
			text += x + " "
		}
		for _, w := range words {
			m[w] = text
		}
	}
	s.completions = m
	return st
}

func biCompopt(s *Shell, _ []string) int {
	s.Warn("compopt: not currently executing completion function")
	return 1
}

func biCompgen(s *Shell, args []string) int {
	var list []string
	prefix, suffix := "", ""
	rest := args[1:]
	word := ""
	act := func(name string) {
		switch name {
		case "alias", "a":
			for n := range s.aliases {
				list = append(list, n)
			}
		case "builtin", "b":
			list = append(list, strings.Fields(builtinNames)...)
		case "function":
			list = append(list, s.functionNames()...)
		case "keyword", "k":
			list = append(list, "if", "then", "else", "elif", "fi", "case", "esac", "for", "select", "while", "until",
				"do", "done", "in", "function", "time", "{", "}", "!", "[[", "]]", "coproc")
		case "variable", "v":
			list = append(list, s.vars.Names()...)
		case "export", "e":
			for _, e := range s.vars.Environ() {
				n, _, _ := strings.Cut(e, "=")
				list = append(list, n)
			}
		case "setopt":
			list = append(list, optionList(true)...)
		case "shopt":
			list = append(list, optionList(false)...)
		case "signal":
			for _, n := range strings.Fields(signalNames) {
				list = append(list, "SIG"+n)
			}
		case "command", "c":
			list = append(list, s.commandNames()...)
		case "file", "f", "directory", "d":
			list = append(list, s.fileNames(word, name[0] == 'd')...)
		}
	}
	var acts []string
	for i := 0; i < len(rest); i++ {
		a := rest[i]
		switch {
		case len(a) == 2 && a[0] == '-' && strings.IndexByte("oAGWFCXPS", a[1]) >= 0 && i+1 < len(rest):
			i++
			switch a[1] {
			case 'A':
				acts = append(acts, rest[i])
			case 'W':
				fields, err := s.Expander().Text(rest[i])
				if err == nil {
					list = append(list, strings.Fields(fields)...)
				}
			case 'P':
				prefix = rest[i]
			case 'S':
				suffix = rest[i]
			case 'F':
				if f, ok := s.funcs[rest[i]]; ok {
					s.call(f, []string{rest[i], "compgen", "", ""})
					if v := s.vars.Lookup("COMPREPLY"); v != nil && v.Array() != nil {
						list = append(list, v.Array().Values()...)
					}
				}
			}
		case a == "--":
		case len(a) > 1 && a[0] == '-':
			for _, c := range []byte(a[1:]) {
				acts = append(acts, string(c))
			}
		default:
			word = a
		}
	}
	for _, a := range acts {
		act(a)
	}
	if len(acts) > 0 {
		sort.Strings(list)
	}
	found := false
	for i, x := range list {
		if strings.HasPrefix(x, word) && (i == 0 || len(acts) == 0 || x != list[i-1]) {
			found = true
			s.print(prefix + x + suffix + "\n")
		}
	}
	if !found {
		return 1
	}
	return 0
}

// commandNames lists everything that can be a command.
func (s *Shell) commandNames() []string {
	list := append(strings.Fields(builtinNames), s.functionNames()...)
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
