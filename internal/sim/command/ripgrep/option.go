package ripgrep

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
	"github.com/paddock-sandbox/paddock/internal/sim/vfs"
)

// flags lists the options: the letter or a point, the long name, and the name
// of the argument of those that have one.
const flags = `A after-context NUM
B before-context NUM
C context NUM
E encoding ENCODING
F fixed-strings
. no-fixed-strings
H with-filename
I no-filename
L follow
. no-follow
M max-columns NUM
. max-columns-preview
. no-max-columns-preview
N no-line-number
P pcre2
. no-pcre2
. auto-hybrid-regex
. no-auto-hybrid-regex
. engine ENGINE
S smart-case
T type-not TYPE
U multiline
. no-multiline
. multiline-dotall
. no-multiline-dotall
V version
. pcre2-version
a text
. no-text
b byte-offset
. no-byte-offset
. binary
. no-binary
c count
. count-matches
. color WHEN
. colors SPEC
. column
. no-column
. context-separator SEP
. no-context-separator
. crlf
. no-crlf
. debug
. trace
d max-depth NUM
. maxdepth NUM
. dfa-size-limit NUM
. regex-size-limit NUM
e regexp PATTERN
f file FILE
. files
l files-with-matches
. files-without-match
. field-context-separator SEP
. field-match-separator SEP
g glob GLOB
. glob-case-insensitive
. no-glob-case-insensitive
. heading
. no-heading
. hidden
. no-hidden
. hyperlink-format FORMAT
. hostname-bin COMMAND
i ignore-case
. iglob GLOB
. ignore-file FILE
. ignore-file-case-insensitive
. no-ignore-file-case-insensitive
. include-zero
. no-include-zero
j threads NUM
. json
. no-json
. line-buffered
. no-line-buffered
. block-buffered
. no-block-buffered
n line-number
m max-count NUM
. max-filesize NUM
. mmap
. no-mmap
. messages
. no-messages
. ignore-messages
. no-ignore-messages
. no-config
. no-ignore
. ignore
. no-ignore-dot
. ignore-dot
. no-ignore-exclude
. ignore-exclude
. no-ignore-files
. ignore-files
. no-ignore-global
. ignore-global
. no-ignore-parent
. ignore-parent
. no-ignore-vcs
. ignore-vcs
. no-require-git
. require-git
. no-unicode
. unicode
. pcre2-unicode
. no-pcre2-unicode
0 null
. null-data
. one-file-system
. no-one-file-system
o only-matching
. passthru
. passthrough
. path-separator SEP
p pretty
q quiet
r replace TEXT
s case-sensitive
. sort KEY
. sortr KEY
. sort-files
. no-sort-files
. stats
. no-stats
. stop-on-nonmatch
t type TYPE
. type-add SPEC
. type-clear TYPE
. type-list
. trim
. no-trim
u unrestricted
v invert-match
. no-invert-match
. vimgrep
w word-regexp
x line-regexp
`

func spec() *command.Spec {
	s := &command.Spec{
		Name: "rg", Synopsis: "[OPTIONS] PATTERN [PATH ...]", Exit: trouble, NoTry: true,
		About: "Look for PATTERN in files and in the files of directories, but for those that ignore files name, hidden and binary ones.",
	}
	for line := range strings.Lines(flags) {
		part := strings.Fields(line)
		o := command.Option{Long: part[1]}
		if part[0] != "." {
			o.Short = part[0][0]
		}
		if part[1] == "hidden" {
			o.Short = '.'
		}
		if len(part) > 2 {
			o.Arg, o.Name = command.Required, part[2]
		}
		s.Options = append(s.Options, o)
	}
	return s
}

type options struct {
	patterns []string
	paths    []string

	fixed, perl, multiline, dotAll, crlf, nul, ascii bool
	letters                                          byte // i, s or S
	word, line, invert                               bool

	after, before int
	passthru      bool
	names         int // 1 is -H, -1 is -I
	named         bool
	numbers       bool
	numbered      int // 1 is -n, -1 is -N
	column        bool
	offset        bool
	heading       bool
	headed        int
	only          bool
	replace       *string
	trim          bool
	vimgrep       bool
	colour        bool
	columns       int
	preview       bool
	nulNames      bool
	separator     string
	separated     bool
	matchMark     string
	contextMark   string
	flushed       bool

	count, countMatches, files, filesWithout, quiet, zero, json, stats, listing, typeList bool

	text, binary, hidden, follow, oneDev, silent bool
	max                                          int64 // negative is no bound
	depth                                        int   // negative is no bound
	size                                         int64 // negative is no bound
	stop                                         bool

	noIgnore, noDot, noExclude, noFiles, noGlobal, noParent, noVCS, noGit bool
	fold                                                                  bool // of ignore files
	globs                                                                 []glob
	ignoreFiles                                                           []string
	types                                                                 []typeChange

	sort string
	down bool
}

type glob struct {
	text string
	fold bool
}

type typeChange struct {
	what byte // t, T, a(dd) or c(lear)
	text string
}

type parser struct {
	t   *kernel.Task
	o   *options
	err error

	unrestricted int
	globFold     bool
	colour       string
}

func parse(t *kernel.Task) (*options, int, bool) {
	a, status, ok := spec().Parse(t)
	if !ok {
		return nil, status, false
	}
	p := &parser{t: t, o: &options{letters: 's', max: -1, depth: -1, size: -1, separator: "--", separated: true, matchMark: ":", contextMark: "-"}}
	for _, f := range a.Flags {
		switch f.Key {
		case "V":
			_, _ = t.Out().WriteString("ripgrep 14.1.1 (Paddock)\n")
			return nil, 0, false
		case "pcre2-version":
			_, _ = t.Out().WriteString("PCRE2 is not here; -P is Paddock's own engine\n")
			return nil, 0, false
		}
		p.flag(f)
		if p.err != nil {
			t.Errorf("%s", p.err)
			return nil, trouble, false
		}
	}
	return p.finish(a.Operands)
}

func (p *parser) number(f command.Flag) int64 {
	n, err := strconv.ParseUint(f.Value, 10, 63)
	if err != nil {
		p.err = fmt.Errorf("error parsing flag %s: value is not a valid number: %q", f.Spelt, f.Value)
	}
	return int64(min(n, math.MaxInt32))
}

func (p *parser) flag(f command.Flag) {
	o := p.o
	name, on := f.Key, true
	if rest, no := strings.CutPrefix(f.Key, "no-"); no {
		switch rest {
		case "context-separator", "ignore", "messages", "require-git", "unicode", "heading", "config", "mmap":
		default:
			if !strings.HasPrefix(rest, "ignore-") || rest == "ignore-messages" || rest == "ignore-file-case-insensitive" {
				name, on = rest, false
			}
		}
	}
	switch name {
	case "A":
		o.after, o.passthru = int(p.number(f)), false
	case "B":
		o.before, o.passthru = int(p.number(f)), false
	case "C":
		o.after = int(p.number(f))
		o.before, o.passthru = o.after, false
	case "E":
		switch strings.ToLower(f.Value) {
		case "auto", "none", "utf-8", "utf8":
		default:
			p.err = fmt.Errorf("grep config error: unknown encoding: %s", f.Value)
		}
	case "F", "fixed-strings":
		o.fixed = on
	case "H":
		o.names = 1
	case "I":
		o.names = -1
	case "L", "follow":
		o.follow = on
	case "M":
		o.columns = int(p.number(f))
	case "max-columns-preview":
		o.preview = on
	case "N":
		o.numbered = -1
	case "n":
		o.numbered = 1
	case "P", "pcre2":
		o.perl = on
	case "engine":
		o.perl = f.Value == "pcre2" || f.Value == "auto"
	case "auto-hybrid-regex":
		o.perl = on
	case "S", "i", "s":
		o.letters = name[0]
	case "U", "multiline":
		o.multiline = on
	case "multiline-dotall":
		o.dotAll = on
	case "a", "text":
		o.text = on
	case "b", "byte-offset":
		o.offset = on
	case "binary":
		o.binary = on
	case "c":
		o.count = true
	case "count-matches":
		o.countMatches = true
	case "color":
		p.colour = f.Value
	case "column":
		o.column = on
	case "context-separator":
		o.separator, o.separated = unescape(f.Value), true
	case "no-context-separator":
		o.separated = false
	case "crlf":
		o.crlf = on
	case "d", "maxdepth":
		o.depth = int(p.number(f))
	case "e":
		o.patterns = append(o.patterns, strings.Split(f.Value, "\n")...)
	case "f":
		p.file(f.Value)
	case "files":
		o.listing = true
	case "l":
		o.files, o.filesWithout = true, false
	case "files-without-match":
		o.filesWithout, o.files = true, false
	case "field-context-separator":
		o.contextMark = unescape(f.Value)
	case "field-match-separator":
		o.matchMark = unescape(f.Value)
	default:
		p.more(name, on, f)
	}
}

// more is flag for the rest of the options.
func (p *parser) more(name string, on bool, f command.Flag) {
	o := p.o
	switch name {
	case "g":
		o.globs = append(o.globs, glob{f.Value, false})
	case "iglob":
		o.globs = append(o.globs, glob{f.Value, true})
	case "glob-case-insensitive":
		p.globFold = on
	case "heading":
		o.headed = 1
	case "no-heading":
		o.headed = -1
	case ".", "hidden":
		o.hidden = on
	case "ignore-file":
		o.ignoreFiles = append(o.ignoreFiles, f.Value)
	case "ignore-file-case-insensitive":
		o.fold = on
	case "include-zero":
		o.zero = on
	case "json":
		o.json = on
	case "line-buffered":
		o.flushed = on
	case "m":
		o.max = p.number(f)
	case "max-filesize":
		o.size = p.bytes(f)
	case "messages", "no-messages":
		o.silent = name == "no-messages"
	case "no-ignore", "ignore":
		v := name == "no-ignore"
		o.noIgnore, o.noDot, o.noExclude, o.noGlobal, o.noParent, o.noVCS, o.noFiles = v, v, v, v, v, v, v
	case "no-ignore-dot", "ignore-dot":
		o.noDot = name == "no-ignore-dot"
	case "no-ignore-exclude", "ignore-exclude":
		o.noExclude = name == "no-ignore-exclude"
	case "no-ignore-files", "ignore-files":
		o.noFiles = name == "no-ignore-files"
	case "no-ignore-global", "ignore-global":
		o.noGlobal = name == "no-ignore-global"
	case "no-ignore-parent", "ignore-parent":
		o.noParent = name == "no-ignore-parent"
	case "no-ignore-vcs", "ignore-vcs":
		o.noVCS = name == "no-ignore-vcs"
	case "no-require-git", "require-git":
		o.noGit = name == "no-require-git"
	case "no-unicode", "unicode":
		o.ascii = name == "no-unicode"
	case "0":
		o.nulNames = true
	case "null-data":
		o.nul = true
	case "one-file-system":
		o.oneDev = on
	case "o":
		o.only = true
	case "passthru", "passthrough":
		o.passthru = true
	case "p":
		p.colour, o.headed, o.numbered = "always", 1, 1
	case "q":
		o.quiet = true
	case "r":
		o.replace = &f.Value
	case "sort", "sortr":
		p.sorting(f, name == "sortr")
	case "sort-files":
		o.sort = ""
	case "stats":
		o.stats = on
	case "stop-on-nonmatch":
		o.stop = true
	case "t", "T":
		o.types = append(o.types, typeChange{name[0], f.Value})
	case "type-add":
		o.types = append(o.types, typeChange{'a', f.Value})
	case "type-clear":
		o.types = append(o.types, typeChange{'c', f.Value})
	case "type-list":
		o.typeList = true
	case "trim":
		o.trim = on
	case "u":
		p.unrestricted++
	case "v", "invert-match":
		o.invert = on
	case "vimgrep":
		o.vimgrep = true
	case "w":
		o.word, o.line = true, false
	case "x":
		o.line, o.word = true, false
	}
}

func (p *parser) sorting(f command.Flag, down bool) {
	switch f.Value {
	case "path", "modified", "accessed", "created":
		p.o.sort, p.o.down = f.Value, down
		if f.Value == "path" && !down {
			p.o.sort = "" // as it comes
		}
	case "none":
		p.o.sort, p.o.down = "", false
	default:
		p.err = fmt.Errorf("error parsing flag %s: choice %q is unrecognized", f.Spelt, f.Value)
	}
}

// bytes reads a size: a number that K, M or G may follow.
func (p *parser) bytes(f command.Flag) int64 {
	s, unit := f.Value, int64(1)
	if n := len(s); n > 0 {
		switch s[n-1] {
		case 'K', 'k':
			unit, s = 1<<10, s[:n-1]
		case 'M', 'm':
			unit, s = 1<<20, s[:n-1]
		case 'G', 'g':
			unit, s = 1<<30, s[:n-1]
		}
	}
	n, err := strconv.ParseUint(s, 10, 32)
	if err != nil {
		p.err = fmt.Errorf("error parsing flag %s: invalid size: %q", f.Spelt, f.Value)
	}
	return int64(n) * unit
}

func (p *parser) file(name string) {
	b, err := command.ReadAll(p.t, name)
	if err != nil {
		p.err = fmt.Errorf("%s: %s", name, vfs.Message(err))
		return
	}
	if len(b) > 0 {
		p.o.patterns = append(p.o.patterns, strings.Split(strings.TrimSuffix(string(b), "\n"), "\n")...)
	}
	if p.o.patterns == nil {
		p.o.patterns = []string{}
	}
}

// unescape reads \n, \t, \xHH and their like in a separator.
func unescape(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}
		i++
		switch s[i] {
		case 'n':
			b.WriteByte('\n')
		case 't':
			b.WriteByte('\t')
		case 'r':
			b.WriteByte('\r')
		case '0':
			b.WriteByte(0)
		case '\\':
			b.WriteByte('\\')
		case 'x':
			if n, err := strconv.ParseUint(s[i+1:min(len(s), i+3)], 16, 8); err == nil && i+2 < len(s) {
				b.WriteByte(byte(n))
				i += 2
				continue
			}
			b.WriteString(`\x`)
		default:
			b.WriteByte('\\')
			b.WriteByte(s[i])
		}
	}
	return b.String()
}

func (p *parser) finish(operands []string) (*options, int, bool) {
	o := p.o
	if p.unrestricted > 0 {
		o.noIgnore, o.noDot, o.noExclude, o.noGlobal, o.noParent, o.noVCS, o.noFiles = true, true, true, true, true, true, true
	}
	o.hidden = o.hidden || p.unrestricted > 1
	o.binary = o.binary || p.unrestricted > 2
	if p.globFold {
		for i := range o.globs {
			o.globs[i].fold = true
		}
	}
	if o.patterns == nil && !o.listing && !o.typeList {
		if len(operands) == 0 {
			p.t.Errorf("ripgrep requires at least one pattern to execute a search")
			return nil, trouble, false
		}
		o.patterns, operands = strings.Split(operands[0], "\n"), operands[1:]
	}
	o.paths = operands
	tty := terminal(p.t)
	o.colour = p.colour == "always" || p.colour == "ansi" || tty && p.colour != "never"
	o.heading = o.headed > 0 || o.headed == 0 && tty
	o.numbers = o.numbered > 0 || o.numbered == 0 && (tty || o.column || o.vimgrep || o.passthru && tty)
	o.column = o.column || o.vimgrep
	if o.vimgrep {
		o.heading = false
	}
	o.separated = o.separated && o.before+o.after > 0
	if o.only && o.count {
		o.count, o.countMatches = false, true // that is what they are together
	}
	if o.countMatches {
		o.count = true
	}
	if o.files || o.filesWithout || o.count {
		o.json = false
	}
	return o, 0, true
}

func terminal(t *kernel.Task) bool {
	d := t.FD(1)
	if d == nil {
		return false
	}
	_, ok := d.File.(kernel.Terminal)
	return ok
}
