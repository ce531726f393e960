package shell

import (
	"sort"
	"strings"

	"github.com/paddock-sandbox/paddock/internal/sim/quote"
	"github.com/paddock-sandbox/paddock/internal/sim/shell/parse"
	"github.com/paddock-sandbox/paddock/internal/sim/shell/variable"
)

// standardPath is what command -p searches.
const standardPath = "/bin:/usr/bin:/sbin:/usr/sbin"

// A hashed is a program whose file is remembered.
type hashed struct {
	file string
	hits int
}

// ownHash makes the table of programs one that no other shell sees.
func (s *Shell) ownHash() {
	if s.hash != nil && !s.hashShared {
		return
	}
	m := make(map[string]*hashed, len(s.hash)+1)
	for n, h := range s.hash {
		c := *h
		m[n] = &c
	}
	s.hash, s.hashShared = m, false
}

func (s *Shell) remember(name, file string) {
	s.ownHash()
	if s.hash[name] == nil {
		s.t.Grow(len(name) + len(file) + 64)
	}
	s.hash[name] = &hashed{file: file, hits: 1}
}

func biHash(s *Shell, args []string) int {
	var list, forget, all, show bool
	path := ""
	o := getopt{s: s, args: args, spec: "dlrtp:"}
	for c := o.next(); c != 0; c = o.next() {
		switch c {
		case 'd':
			forget = true
		case 'l':
			list = true
		case 'r':
			all = true
		case 't':
			show = true
		case 'p':
			path = o.arg
		default:
			return o.usage("hash: usage: hash [-lr] [-p pathname] [-dt] [name ...]")
		}
	}
	if !s.opt[oHashall] {
		s.Warn("hash: hashing disabled")
		return 1
	}
	rest := o.rest()
	if all {
		s.hash = nil
	}
	if len(rest) == 0 {
		if all {
			return 0
		}
		if show {
			s.Warn("hash: -t: option requires an argument")
			return 1
		}
		return s.showHash(list)
	}
	st := 0
	for _, name := range rest {
		s.ownHash()
		h := s.hash[name]
		switch {
		case show:
			if h == nil {
				s.Warn("hash: %s: not found", name)
				st = 1
			} else if list {
				s.print("builtin hash -p " + h.file + " " + name + "\n")
			} else if len(rest) > 1 {
				s.print(name + "\t" + h.file + "\n")
			} else {
				s.print(h.file + "\n")
			}
		case forget:
			if h == nil {
				s.Warn("hash: %s: not found", name)
				st = 1
			}
			delete(s.hash, name)
		case path != "":
			s.remember(name, path)
			s.hash[name].hits = 0
		case strings.Contains(name, "/"), s.known(name):
		default:
			p, _ := s.vars.Get("PATH")
			file, err := s.t.Lookup(name, p)
			if err != nil {
				s.Warn("hash: %s: not found", name)
				st = 1
				continue
			}
			s.remember(name, file)
			s.hash[name].hits = 0
		}
	}
	return st
}

// hashChains is how many chains bash's table of programs has, which decides
// about the order that it is printed in.
const hashChains = 256

func (s *Shell) showHash(list bool) int {
	if len(s.hash) == 0 {
		if !s.opt[oPosix] {
			s.print("hash: hash table empty\n")
		}
		return 0
	}
	names := make([]string, 0, len(s.hash))
	for n := range s.hash {
		names = append(names, n)
	}
	variable.Chained(names, hashChains)
	if !list {
		s.print("hits\tcommand\n")
	}
	for _, n := range names {
		if list {
			s.print("builtin hash -p " + s.hash[n].file + " " + n + "\n")
		} else {
			s.printf("%4d\t%s\n", s.hash[n].hits, s.hash[n].file)
		}
	}
	return 0
}

func biBuiltin(s *Shell, c *parse.Simple, args []string) int {
	rest := args[1:]
	if len(rest) > 0 && rest[0] == "--" {
		rest = rest[1:]
	} else if len(rest) > 0 && len(rest[0]) > 1 && rest[0][0] == '-' {
		s.Warn("builtin: %s: invalid option", rest[0][:2])
		s.line0("builtin: usage: builtin [shell-builtin [arg ...]]")
		return 2
	}
	if len(rest) == 0 {
		return 0
	}
	b := s.builtin(rest[0])
	if b.name == "" {
		s.Warn("builtin: %s: not a shell builtin", rest[0])
		return 1
	}
	return s.runBuiltin(c, b, rest)
}

func biCommand(s *Shell, c *parse.Simple, args []string) int {
	var path, brief, long bool
	o := getopt{s: s, args: args, spec: "pvV"}
	for k := o.next(); k != 0; k = o.next() {
		switch k {
		case 'p':
			path = true
		case 'v':
			brief = true
		case 'V':
			long = true
		default:
			return o.usage("command: usage: command [-pVv] command [arg ...]")
		}
	}
	rest := o.rest()
	if brief || long {
		st := 1
		for _, name := range rest {
			how := typeLong
			if brief {
				how = typeBrief
			}
			if s.describe(name, how, false, path) {
				st = 0
			} else if long {
				s.Warn("command: %s: not found", name)
			}
		}
		if len(rest) == 0 {
			return 0
		}
		return st
	}
	if len(rest) == 0 {
		return 0
	}
	if b := s.builtin(rest[0]); b.name != "" {
		b.special = false
		s.plain++
		defer func() { s.plain-- }()
		return s.runBuiltin(c, b, rest)
	}
	if path {
		file, err := s.t.Lookup(rest[0], standardPath)
		if err != nil {
			return s.notFound(rest, err)
		}
		return s.program1(file, rest)
	}
	return s.external(rest)
}

// How describe describes.
const (
	typeLong  = iota // command -V, type
	typeBrief        // command -v
	typeWord         // type -t
	typePath         // type -p
)

// keyword tells reserved words.
func keyword(name string) bool {
	switch name {
	case "if", "then", "else", "elif", "fi", "case", "esac", "for", "select", "while", "until", "do", "done", "in",
		"function", "time", "{", "}", "!", "[[", "]]", "coproc":
		return true
	}
	return false
}

// describe tells what a name is; false is nothing.
func (s *Shell) describe(name string, how int, all, standard bool) bool {
	found := false
	say := func(long, brief, word string) bool {
		found = true
		switch how {
		case typeLong:
			s.print(long + "\n")
		case typeBrief:
			s.print(brief + "\n")
		case typeWord:
			s.print(word + "\n")
		}
		return !all
	}
	if v, ok := s.aliases[name]; ok && s.opt[oExpandAliases] && how != typePath {
		if say(name+" is aliased to `"+v+"'", "alias "+name+"="+quote.Single(v), "alias") {
			return true
		}
	}
	if keyword(name) && how != typePath {
		if say(name+" is a shell keyword", name, "keyword") {
			return true
		}
	}
	if s.opt[oPosix] && s.builtin(name).special && how != typePath {
		if say(name+" is a special shell builtin", name, "builtin") {
			return true
		}
	}
	if f, ok := s.funcs[name]; ok && how != typePath {
		long := ""
		if how == typeLong {
			long = name + " is a function\n" + strings.TrimSuffix(printFunction(f), "\n")
		}
		if say(long, name, "function") {
			return true
		}
	}
	if s.builtin(name).name != "" && how != typePath {
		if say(name+" is a shell builtin", name, "builtin") {
			return true
		}
	}
	path, _ := s.vars.Get("PATH")
	if standard {
		path = standardPath
	}
	if h, ok := s.hash[name]; ok && !all && !standard {
		found = true
		switch how {
		case typeLong:
			s.print(name + " is hashed (" + h.file + ")\n")
		case typeWord:
			s.print("file\n")
		default:
			s.print(h.file + "\n")
		}
		return true
	}
	for _, file := range s.files(name, path, all) {
		if how == typePath {
			found = true
			s.print(file + "\n")
			continue
		}
		say(name+" is "+file, file, "file")
	}
	return found
}

// unrunnable finds the first file of a name, which cannot be run: bash says that
// one where there is no program, unless it is a directory.
func (s *Shell) unrunnable(name, path string) string {
	for _, dir := range strings.Split(path, ":") {
		if dir == "" {
			dir = "."
		}
		file := strings.TrimRight(dir, "/") + "/" + name
		if i, err := s.t.View.Stat(file); err == nil {
			if i.IsDir() {
				return ""
			}
			return file
		}
	}
	return ""
}

// files finds the programs of a name.
func (s *Shell) files(name, path string, all bool) []string {
	if strings.Contains(name, "/") {
		if _, err := s.t.Lookup(name, ""); err != nil {
			return nil
		}
		return []string{name}
	}
	if !all {
		file, err := s.t.Lookup(name, path)
		if err != nil {
			file = s.unrunnable(name, path)
		}
		if file == "" {
			return nil
		}
		return []string{file}
	}
	var list []string
	for _, dir := range strings.Split(path, ":") {
		if file, err := s.t.Lookup(name, dir); err == nil {
			list = append(list, file)
		}
	}
	return list
}

func biType(s *Shell, args []string) int {
	var all, noFuncs, forcePath bool
	how := typeLong
	o := getopt{s: s, args: args, spec: "afptP"}
	for c := o.next(); c != 0; c = o.next() {
		switch c {
		case 'a':
			all = true
		case 'f':
			noFuncs = true
		case 'p':
			how = typePath
		case 't':
			how = typeWord
		case 'P':
			how, forcePath = typePath, true
		default:
			return o.usage("type: usage: type [-afptP] name [name ...]")
		}
	}
	st := 0
	for _, name := range o.rest() {
		saved := s.funcs
		if noFuncs {
			s.funcs = nil
		}
		ok := false
		if how == typePath && !forcePath && !all && s.known(name) {
			ok = true
		} else {
			ok = s.describe(name, how, all, false)
		}
		s.funcs = saved
		if !ok {
			st = 1
			if how == typeLong {
				s.Warn("type: %s: not found", name)
			}
		}
	}
	return st
}

// known reports whether a name is something else than a program.
func (s *Shell) known(name string) bool {
	_, alias := s.aliases[name]
	_, fn := s.funcs[name]
	return alias && s.opt[oExpandAliases] || fn || keyword(name) || s.builtin(name).name != ""
}

func biEnable(s *Shell, args []string) int {
	var all, off, reuse, special bool
	o := getopt{s: s, args: args, spec: "adnpsf:"}
	for c := o.next(); c != 0; c = o.next() {
		switch c {
		case 'a':
			all = true
		case 'n':
			off = true
		case 'p':
			reuse = true
		case 's':
			special = true
		case 'f', 'd':
			s.Warn("enable: dynamic loading not available")
			return 2
		default:
			return o.usage("enable: usage: enable [-a] [-dnps] [-f filename] [name ...]")
		}
	}
	rest := o.rest()
	if len(rest) == 0 || reuse {
		for _, n := range strings.Fields(builtinNames) {
			if special && !specialBuiltin(n) {
				continue
			}
			switch dead := s.disabled[n]; {
			case dead && (all || off):
				s.print("enable -n " + n + "\n")
			case !dead && !off:
				s.print("enable " + n + "\n")
			}
		}
		return 0
	}
	st := 0
	m := make(map[string]bool, len(s.disabled)+1)
	for k, v := range s.disabled {
		m[k] = v
	}
	for _, n := range rest {
		if findBuiltin(n).name == "" {
			s.Warn("enable: %s: not a shell builtin", n)
			st = 1
			continue
		}
		if off {
			m[n] = true
		} else {
			delete(m, n)
		}
	}
	s.disabled = m
	return st
}

func biAlias(s *Shell, args []string) int {
	reuse := false
	o := getopt{s: s, args: args, spec: "p"}
	for c := o.next(); c != 0; c = o.next() {
		if c != 'p' {
			return o.usage("alias: usage: alias [-p] [name[=value] ... ]")
		}
		reuse = true
	}
	rest := o.rest()
	if len(rest) == 0 || reuse {
		names := make([]string, 0, len(s.aliases))
		for n := range s.aliases {
			names = append(names, n)
		}
		sort.Strings(names)
		for _, n := range names {
			s.showAlias(n)
		}
	}
	st := 0
	for _, a := range rest {
		name, value, set := strings.Cut(a, "=")
		if !set || name == "" {
			if _, ok := s.aliases[a]; !ok {
				s.Warn("alias: %s: not found", a)
				st = 1
				continue
			}
			s.showAlias(a)
			continue
		}
		if strings.ContainsAny(name, " \t\n$`\"'\\/<>&;|()") {
			s.Warn("alias: `%s': invalid alias name", name)
			st = 1
			continue
		}
		s.ownAliases()
		s.t.Grow(len(name) + len(value) + 64)
		s.aliases[name] = value
	}
	return st
}

func (s *Shell) showAlias(name string) {
	prefix := "alias "
	if s.opt[oPosix] {
		prefix = ""
	}
	if strings.HasPrefix(name, "-") {
		prefix += "-- "
	}
	s.print(prefix + name + "=" + quote.Single(s.aliases[name]) + "\n")
}

func (s *Shell) ownAliases() {
	if s.aliasShared || s.aliases == nil {
		m := make(map[string]string, len(s.aliases)+1)
		for k, v := range s.aliases {
			m[k] = v
		}
		s.aliases, s.aliasShared = m, false
	}
}

func biUnalias(s *Shell, args []string) int {
	o := getopt{s: s, args: args, spec: "a"}
	usage := "unalias: usage: unalias [-a] name [name ...]"
	switch o.next() {
	case 0:
	case 'a':
		s.aliases, s.aliasShared = nil, false
		return 0
	default:
		return o.usage(usage)
	}
	rest := o.rest()
	if len(rest) == 0 {
		return o.usage(usage)
	}
	st := 0
	for _, n := range rest {
		if _, ok := s.aliases[n]; !ok {
			s.Warn("unalias: %s: not found", n)
			st = 1
			continue
		}
		s.ownAliases()
		delete(s.aliases, n)
	}
	return st
}
