package grep

import (
	"math"
	"strings"

	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
	"github.com/paddock-sandbox/paddock/internal/sim/regex"
)

const synopsis = "[OPTION]... PATTERNS [FILE]..."

var spec = &command.Spec{
	Name: "grep", Synopsis: synopsis, Exit: trouble, NoTry: true,
	About: "Search for PATTERNS, one a line, in each FILE. A FILE of '-' is standard input. Without FILE it is '.' if recursive, else '-'.",
	Options: []command.Option{
		{Short: 'E', Long: "extended-regexp", Help: "PATTERNS are extended regular expressions"},
		{Short: 'F', Long: "fixed-strings", Help: "PATTERNS are strings"},
		{Long: "fixed-regexp"},
		{Short: 'G', Long: "basic-regexp", Help: "PATTERNS are basic regular expressions"},
		{Short: 'P', Long: "perl-regexp", Help: "PATTERNS are Perl regular expressions"},
		{Short: 'X', Arg: command.Required, Name: "SYNTAX"},
		{Short: 'r', Long: "recursive", Help: "the same as --directories=recurse"},
		{Short: 'e', Long: "regexp", Arg: command.Required, Name: "PATTERNS", Help: "look for PATTERNS"},
		{Short: 'f', Long: "file", Arg: command.Required, Name: "FILE", Help: "take PATTERNS from FILE"},
		{Short: 'i', Long: "ignore-case", Help: "capital and small letters are the same"},
		{Long: "no-ignore-case", Help: "capital and small letters differ, which is the default"},
		{Short: 'y', Help: "the same as -i"},
		{Short: 'w', Long: "word-regexp", Help: "match whole words only"},
		{Short: 'x', Long: "line-regexp", Help: "match whole lines only"},
		{Short: 'z', Long: "null-data", Help: "lines end with a zero byte"},
		{Short: 's', Long: "no-messages", Help: "do not complain about files"},
		{Long: "include", Arg: command.Required, Name: "GLOB", Help: "search only files that match GLOB"},
		{Short: 'T', Long: "initial-tab", Help: "let tabs line up"},
		{Short: 'v', Long: "invert-match", Help: "select the lines that do not match"},
		{Short: 'm', Long: "max-count", Arg: command.Required, Name: "NUM", Help: "stop after NUM selected lines"},
		{Short: 'b', Long: "byte-offset", Help: "print the byte offset of output"},
		{Short: 'n', Long: "line-number", Help: "print the number of lines"},
		{Long: "line-buffered", Help: "write out each line at once"},
		{Short: 'H', Long: "with-filename", Help: "print the names of files before lines"},
		{Short: 'h', Long: "no-filename", Help: "do not print them"},
		{Long: "label", Arg: command.Required, Name: "LABEL", Help: "the name of standard input"},
		{Short: 'o', Long: "only-matching", Help: "print only what matches of lines, where that is not empty"},
		{Short: 'q', Long: "quiet", Help: "print nothing"},
		{Long: "silent"},
		{Long: "binary-files", Arg: command.Required, Name: "TYPE", Help: "binary files are TYPE: binary, text or without-match"},
		{Short: 'a', Long: "text", Help: "the same as --binary-files=text"},
		{Short: 'I', Help: "the same as --binary-files=without-match"},
		{Short: 'd', Long: "directories", Arg: command.Required, Name: "ACTION", Help: "read, recurse into, or skip directories"},
		{Short: 'D', Long: "devices", Arg: command.Required, Name: "ACTION", Help: "read or skip devices, FIFOs and sockets"},
		{Short: 'R', Long: "dereference-recursive", Help: "likewise, and follow all symbolic links"},
		{Long: "exclude", Arg: command.Required, Name: "GLOB", Help: "skip files that match GLOB"},
		{Long: "exclude-from", Arg: command.Required, Name: "FILE", Help: "skip files that match a pattern of FILE"},
		{Long: "exclude-dir", Arg: command.Required, Name: "GLOB", Help: "skip directories that match GLOB"},
		{Short: 'L', Long: "files-without-match", Help: "print only the names of files without a selected line"},
		{Short: 'l', Long: "files-with-matches", Help: "print only the names of files with a selected line"},
		{Short: 'c', Long: "count", Help: "print only the number of selected lines of each file"},
		{Short: 'Z', Long: "null", Help: "print a zero byte after the names of files"},
		{Short: 'u', Long: "unix-byte-offsets"},
		{Short: 'U', Long: "binary", Help: "(ignored)"},
		{Short: 'B', Long: "before-context", Arg: command.Required, Name: "NUM", Help: "print NUM lines before"},
		{Short: 'A', Long: "after-context", Arg: command.Required, Name: "NUM", Help: "print NUM lines after"},
		{Short: 'C', Long: "context", Arg: command.Required, Name: "NUM", Help: "print NUM lines before and after; -NUM is the same"},
		{Long: "group-separator", Arg: command.Required, Name: "SEP", Help: "print SEP between groups of lines"},
		{Long: "no-group-separator", Help: "print nothing between them"},
		{Long: "color", Arg: command.Optional, Name: "WHEN", Help: "mark what matches: always, never or auto"},
		{Long: "colour", Arg: command.Optional, Name: "WHEN"},
	},
}

// What to do with binary files, directories and devices.
const (
	binaryNamed = iota
	binaryText
	binaryWithout
)

const (
	dirsRead = iota
	dirsRecurse
	dirsSkip
)

const (
	devicesUnlessFound = iota // skip those that were not named
	devicesRead
	devicesSkip
)

type options struct {
	syntax   string // a letter
	patterns []string
	operands []string

	fold, word, line, invert, nul bool
	bytes                         bool // characters are bytes, as the locale says

	count, files, filesWithout, quiet, only bool

	maxCount      int64 // negative is no bound
	before, after int   // negative is none
	group         bool  // there is a separator of groups
	separator     string

	names                      bool // before lines
	namesFound                 bool // before lines of files that were found in directories
	numbers, offsets           bool
	tab, nulNames, lineFlushed bool
	label                      string
	colour                     bool
	colours                    colours

	silent   bool
	binary   int
	dirs     int
	devices  int
	follow   bool
	excluded exclusion
}

// parse reads the arguments. Where there is something wrong, it has said so.
func parse(t *kernel.Task, syntax string) (o *options, status int, ok bool) {
	args, status, ok := spec.ParseArgs(t, numbered(t.Args[1:]))
	if !ok {
		if status != 0 {
			usage(t)
		}
		return nil, status, false
	}
	p := parser{t: t, o: &options{syntax: syntax, maxCount: -1, before: -1, after: -1, group: true, separator: "--"}, context: -1}
	for _, f := range args.Flags {
		if !p.flag(f) {
			return nil, p.status, false
		}
	}
	return p.finish(args.Operands)
}

func usage(t *kernel.Task) int {
	_, _ = t.Write(2, []byte("Usage: "+t.Name()+" "+synopsis+"\nTry '"+t.Name()+" --help' for more information.\n"))
	return trouble
}

// numbered writes -NUM as --context=NUM.
func numbered(args []string) []string {
	var out []string
	for i := 0; i < len(args); i++ {
		arg := args[i]
		if arg == "--" {
			return append(out, args[i:]...)
		}
		if strings.HasPrefix(arg, "--") {
			out = append(out, arg)
			if takesNext(arg[2:]) && i+1 < len(args) {
				i++
				out = append(out, args[i])
			}
			continue
		}
		if len(arg) < 2 || arg[0] != '-' {
			out = append(out, arg)
			continue
		}
		start := 1
		for j := 1; j < len(arg); j++ {
			if digit(arg[j]) {
				k := j
				for k < len(arg) && digit(arg[k]) {
					k++
				}
				if j > start {
					out = append(out, "-"+arg[start:j])
				}
				out = append(out, "--context="+arg[j:k])
				start, j = k, k-1
				continue
			}
			if hasArg(arg[j]) {
				out = append(out, "-"+arg[start:])
				if j+1 == len(arg) && i+1 < len(args) {
					i++
					out = append(out, args[i])
				}
				start = len(arg)
				break
			}
		}
		if start < len(arg) {
			out = append(out, "-"+arg[start:])
		}
	}
	return out
}

func digit(c byte) bool { return c >= '0' && c <= '9' }

func hasArg(c byte) bool {
	for i := range spec.Options {
		if spec.Options[i].Short == c {
			return spec.Options[i].Arg == command.Required
		}
	}
	return false
}

// takesNext says whether a long option, which may be an abbreviation, takes
// the argument after it.
func takesNext(name string) bool {
	takes := false
	for i := range spec.Options {
		o := spec.Options[i]
		if o.Long == name {
			return o.Arg == command.Required
		}
		if o.Long != "" && strings.HasPrefix(o.Long, name) {
			takes = o.Arg == command.Required
		}
	}
	return takes
}

type parser struct {
	t      *kernel.Task
	o      *options
	status int

	keys    []string // the patterns, by lines
	given   bool     // there were some
	named   int      // 1 is -H, -1 is -h
	context int
	marked  string // --color
}

func (p *parser) fail(format string, args ...any) bool {
	p.t.Errorf(format, args...)
	p.status = trouble
	return false
}

func (p *parser) flag(f command.Flag) bool {
	o := p.o
	switch f.Key {
	case "E", "F", "G", "P":
		return p.syntax(f.Key)
	case "fixed-regexp":
		return p.syntax("F")
	case "X":
		return p.matcher(f.Value)
	case "e":
		p.keys, p.given = append(p.keys, strings.Split(f.Value, "\n")...), true
	case "f":
		return p.file(f.Value)
	case "i", "y":
		o.fold = true
	case "no-ignore-case":
		o.fold = false
	case "w":
		o.word = true
	case "x":
		o.line = true
	case "z":
		o.nul = true
	case "s":
		o.silent = true
	case "v":
		o.invert = true
	case "m":
		n, ok := number(f.Value)
		if !ok {
			return p.fail("invalid max count")
		}
		o.maxCount = max(n, -1)
	case "b":
		o.offsets = true
	case "n":
		o.numbers = true
	case "line-buffered":
		o.lineFlushed = true
	case "H":
		p.named = 1
	case "h":
		p.named = -1
	case "label":
		o.label = f.Value
	case "o":
		o.only = true
	case "q", "silent":
		o.quiet = true
	case "a":
		o.binary = binaryText
	case "I":
		o.binary = binaryWithout
	case "u":
		p.t.Errorf("warning: --unix-byte-offsets (-u) is obsolete")
	case "L":
		o.filesWithout, o.files = true, false
	case "l":
		o.files, o.filesWithout = true, false
	case "c":
		o.count = true
	case "T":
		o.tab = true
	case "Z":
		o.nulNames = true
	case "A", "B", "C":
		return p.lines(f)
	case "group-separator":
		o.group, o.separator = true, f.Value
	case "no-group-separator":
		o.group = false
	default:
		return p.place(f)
	}
	return true
}

// place is flag for the options that say what is searched.
func (p *parser) place(f command.Flag) bool {
	o := p.o
	switch f.Key {
	case "r":
		o.dirs, o.follow = dirsRecurse, false
	case "R":
		o.dirs, o.follow = dirsRecurse, true
	case "include":
		o.excluded.files.add(f.Value, true)
	case "exclude":
		o.excluded.files.add(f.Value, false)
	case "exclude-dir":
		for len(f.Value) > 1 && strings.HasSuffix(f.Value, "/") {
			f.Value = f.Value[:len(f.Value)-1]
		}
		o.excluded.dirs.add(f.Value, false)
	case "exclude-from":
		return p.excludeFrom(f.Value)
	case "binary-files":
		switch f.Value {
		case "binary":
			o.binary = binaryNamed
		case "text":
			o.binary = binaryText
		case "without-match":
			o.binary = binaryWithout
		default:
			return p.fail("unknown binary-files type")
		}
	case "d":
		return p.directories(f.Value)
	case "D":
		switch f.Value {
		case "read":
			o.devices = devicesRead
		case "skip":
			o.devices = devicesSkip
		default:
			return p.fail("unknown devices method")
		}
	case "color", "colour":
		return p.colour(f)
	}
	return true
}

func (p *parser) directories(action string) bool {
	list := []string{"read", "recurse", "skip"}
	word, err := command.Choice(action, list)
	if err != nil {
		text := err.Error() + " " + command.Quote(action) + " for " + command.Quote("--directories") + "\nValid arguments are:"
		for _, w := range list {
			text += "\n  - " + command.Quote(w)
		}
		p.t.Errorf("%s", text)
		usage(p.t)
		p.status = nothing
		return false
	}
	switch word {
	case "read":
		p.o.dirs = dirsRead
	case "recurse":
		p.o.dirs = dirsRecurse
	case "skip":
		p.o.dirs = dirsSkip
	}
	return true
}

func (p *parser) colour(f command.Flag) bool {
	switch f.Value {
	case "always", "yes", "force":
		p.marked = "always"
	case "never", "no", "none":
		p.marked = ""
	case "auto", "tty", "if-tty":
		p.marked = "auto"
	default:
		if f.Given {
			_, _, _ = spec.ParseArgs(p.t, []string{"--help"})
			return false
		}
		p.marked = "auto"
	}
	return true
}

func (p *parser) syntax(letter string) bool {
	if p.o.syntax != "" && p.o.syntax != letter {
		return p.fail("conflicting matchers specified")
	}
	p.o.syntax = letter
	return true
}

// matcher is -X, which is not told of.
func (p *parser) matcher(name string) bool {
	switch name {
	case "grep":
		return p.syntax("G")
	case "egrep", "awk", "gawk", "posixawk":
		return p.syntax("E")
	case "fgrep":
		return p.syntax("F")
	case "perl":
		return p.syntax("P")
	}
	return p.fail("invalid matcher %s", name)
}

// number reads a number with a sign; what is too large is the largest.
func number(s string) (n int64, ok bool) {
	s = strings.TrimLeft(s, " \t\n\v\f\r")
	negative := strings.HasPrefix(s, "-")
	if negative || strings.HasPrefix(s, "+") {
		s = s[1:]
	}
	for i := range len(s) {
		if !digit(s[i]) {
			return 0, false
		}
		d := int64(s[i] - '0')
		if n > (math.MaxInt64-d)/10 {
			n = math.MaxInt64
		} else {
			n = 10*n + d
		}
	}
	if negative {
		n = -n
	}
	return n, s != ""
}

func (p *parser) lines(f command.Flag) bool {
	n, ok := number(f.Value)
	if !ok || n < 0 {
		return p.fail("%s: invalid context length argument", f.Value)
	}
	k := int(min(n, math.MaxInt32))
	switch f.Key {
	case "A":
		p.o.after = k
	case "B":
		p.o.before = k
	case "C":
		p.context = k
	}
	return true
}

func (p *parser) finish(operands []string) (*options, int, bool) {
	o := p.o
	if p.marked == "always" || p.marked == "auto" && terminal(p.t) {
		o.colour = true
		o.colours.read(p.t)
	}
	if o.before < 0 {
		o.before = p.context
	}
	if o.after < 0 {
		o.after = p.context
	}
	o.patterns = p.keys
	if !p.given {
		if len(operands) == 0 {
			return nil, usage(p.t), false
		}
		o.patterns, operands = strings.Split(operands[0], "\n"), operands[1:]
	}
	if o.quiet {
		o.files, o.filesWithout = false, false
	}
	o.operands = operands
	o.bytes = p.t.Bytewise()
	o.names = p.named > 0 || p.named == 0 && len(operands) > 1
	o.namesFound = o.names || p.named == 0
	o.label = stdinName(o.label)
	return o, 0, true
}

func stdinName(label string) string {
	if label == "" {
		return "(standard input)"
	}
	return label
}

// terminal says whether what is written goes to a terminal that has colours.
func terminal(t *kernel.Task) bool {
	d := t.FD(1)
	if d == nil {
		return false
	}
	_, ok := d.File.(kernel.Terminal)
	term := t.Getenv("TERM")
	return ok && term != "" && term != "dumb"
}

func (o *options) flavour() regex.Flavour {
	switch o.syntax {
	case "E":
		return regex.GrepERE
	case "F":
		return regex.Literal
	case "P":
		return regex.Perl
	}
	return regex.GrepBRE
}
