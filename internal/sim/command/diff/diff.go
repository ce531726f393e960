// Package diff has the tools of GNU diffutils and patch, which compare files
// and apply differences.
package diff

import (
	"bytes"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
	"github.com/paddock-sandbox/paddock/internal/sim/linux"
	"github.com/paddock-sandbox/paddock/internal/sim/pattern"
	"github.com/paddock-sandbox/paddock/internal/sim/quote"
	"github.com/paddock-sandbox/paddock/internal/sim/regex"
	"github.com/paddock-sandbox/paddock/internal/sim/strftime"
	"github.com/paddock-sandbox/paddock/internal/sim/vfs"
)

// Commands lists the tools of this package.
func Commands() []command.Command {
	return []command.Command{
		{Name: "cmp", Run: runCmp},
		{Name: "diff", Run: runDiff},
		{Name: "diff3", Run: runDiff3},
		{Name: "sdiff", Run: runSdiff},
		{Name: "patch", Run: runPatch},
	}
}

func reason(err error) string { return vfs.Message(err) }

var diffSpec = &command.Spec{
	Name: "diff", Synopsis: "[OPTION]... FILES", Exit: 2, NoTry: true, About: "Compare FILES line by line.",
	Options: []command.Option{
		{Long: "normal", Help: "output a normal diff (the default)"},
		{Short: 'q', Long: "brief", Help: "report only when files differ"},
		{Short: 's', Long: "report-identical-files", Help: "report when two files are the same"},
		{Short: 'c', Help: "output 3 lines of copied context"},
		{Short: 'C', Long: "context", Arg: command.Optional, Name: "NUM", Help: "output NUM (default 3) lines of copied context"},
		{Short: 'u', Help: "output 3 lines of unified context"},
		{Short: 'U', Long: "unified", Arg: command.Optional, Name: "NUM", Help: "output NUM (default 3) lines of unified context"},
		{Short: 'e', Long: "ed", Help: "output an ed script"},
		{Short: 'f', Long: "forward-ed", Help: "output a script like ed's, in forward order"},
		{Short: 'n', Long: "rcs", Help: "output an RCS format diff"},
		{Short: 'y', Long: "side-by-side", Help: "output in two columns"},
		{Short: 'W', Long: "width", Arg: command.Required, Name: "NUM", Help: "output at most NUM (default 130) print columns"},
		{Long: "left-column", Help: "output only the left column of common lines"},
		{Long: "suppress-common-lines", Help: "do not output common lines"},
		{Short: 'p', Long: "show-c-function", Help: "show which C function each change is in"},
		{Short: 'F', Long: "show-function-line", Arg: command.Required, Name: "RE", Help: "show the most recent line matching RE"},
		{Short: 'L', Long: "label", Arg: command.Required, Name: "LABEL", Help: "use LABEL instead of file name and timestamp"},
		{Short: 't', Long: "expand-tabs", Help: "expand tabs to spaces in output"},
		{Short: 'T', Long: "initial-tab", Help: "make tabs line up by prepending a tab"},
		{Long: "tabsize", Arg: command.Required, Name: "NUM", Help: "tab stops every NUM (default 8) print columns"},
		{Long: "suppress-blank-empty", Help: "suppress space or tab before empty output lines"},
		{Short: 'l', Long: "paginate", Help: "(ignored)"},
		{Short: 'r', Long: "recursive", Help: "recursively compare any subdirectories found"},
		{Long: "no-dereference", Help: "don't follow symbolic links"},
		{Short: 'N', Long: "new-file", Help: "treat absent files as empty"},
		{Short: 'P', Long: "unidirectional-new-file", Help: "treat absent first files as empty"},
		{Long: "ignore-file-name-case", Help: "ignore case when comparing file names"},
		{Long: "no-ignore-file-name-case", Help: "consider case when comparing file names"},
		{Short: 'x', Long: "exclude", Arg: command.Required, Name: "PAT", Help: "exclude files that match PAT"},
		{Short: 'X', Long: "exclude-from", Arg: command.Required, Name: "FILE", Help: "exclude files that match any pattern in FILE"},
		{Short: 'S', Long: "starting-file", Arg: command.Required, Name: "FILE", Help: "start with FILE when comparing directories"},
		{Long: "from-file", Arg: command.Required, Name: "FILE1", Help: "compare FILE1 to all operands"},
		{Long: "to-file", Arg: command.Required, Name: "FILE2", Help: "compare all operands to FILE2"},
		{Short: 'i', Long: "ignore-case", Help: "ignore case differences in file contents"},
		{Short: 'E', Long: "ignore-tab-expansion", Help: "ignore changes due to tab expansion"},
		{Short: 'Z', Long: "ignore-trailing-space", Help: "ignore white space at line end"},
		{Short: 'b', Long: "ignore-space-change", Help: "ignore changes in the amount of white space"},
		{Short: 'w', Long: "ignore-all-space", Help: "ignore all white space"},
		{Short: 'B', Long: "ignore-blank-lines", Help: "ignore changes where lines are all blank"},
		{Short: 'I', Long: "ignore-matching-lines", Arg: command.Required, Name: "RE", Help: "ignore changes where all lines match RE"},
		{Short: 'a', Long: "text", Help: "treat all files as text"},
		{Long: "strip-trailing-cr", Help: "strip trailing carriage return on input"},
		{Short: 'D', Long: "ifdef", Arg: command.Required, Name: "NAME", Help: "output merged file with '#ifdef NAME' diffs"},
		{Short: 'd', Long: "minimal", Help: "try hard to find a smaller set of changes"},
		{Long: "horizon-lines", Arg: command.Required, Name: "NUM", Help: "keep NUM lines of the common prefix and suffix"},
		{Short: 'H', Long: "speed-large-files", Help: "assume large files and many scattered small changes"},
		{Long: "color", Arg: command.Optional, Name: "WHEN", Help: "color output; WHEN is 'never', 'always', or 'auto'"},
		{Long: "palette", Arg: command.Required, Help: "the colors to use when --color is active"},
		{Short: '0', Help: "digits are a length of context"}, {Short: '1'}, {Short: '2'}, {Short: '3'}, {Short: '4'}, {Short: '5'}, {Short: '6'}, {Short: '7'}, {Short: '8'}, {Short: '9'},
	},
}

// style is how differences are shown.
type style uint8

const (
	unset style = iota
	normal
	contextual
	unified
	edScript
	forwardEd
	rcs
	sideBySide
	ifdef
)

// A differ is a run of diff.
type differ struct {
	t    *kernel.Task
	w    *command.Writer
	zone *time.Location

	style                       style
	context, horizon, tab       int
	width                       int
	brief, same, text, minimal  bool
	recursive, newFile, newLeft bool
	foldNames, noFollow         bool
	spaces                      spaces
	fold, stripCR, ignoreBlank  bool
	ignore, function            *regex.Regexp
	labels                      []string
	expand, initialTab          bool
	noBlank                     bool // no space before empty lines
	leftColumn, suppress        bool
	name                        string // of -D
	exclude                     []*pattern.Pattern
	start                       string
	colour                      bool
	switches                    string // the options, as a line of -r shows them
}

func tryHelp(t *kernel.Task) int {
	t.Errorf("Try '%s --help' for more information.", t.Name())
	return 2
}

func usage(t *kernel.Task, format string, args ...any) int {
	t.Errorf(format, args...)
	return tryHelp(t)
}

func runDiff(t *kernel.Task) int {
	a, status, ok := diffSpec.ParseArgs(t, contextArgs(t.Args[1:]))
	if !ok {
		if status != 0 {
			return tryHelp(t)
		}
		return 0
	}
	d := &differ{t: t, w: command.StdoutStatus(t, 2), zone: strftime.Zone(t.Getenv("TZ")), context: -1, tab: 8, width: 130}
	if status, ok := d.options(a); !ok {
		return status
	}
	from, fromGiven := a.Value("from-file")
	to, toGiven := a.Value("to-file")
	files := a.Operands
	switch {
	case fromGiven && toGiven:
		return usage(t, "--from-file and --to-file both specified")
	case fromGiven || toGiven:
		for _, f := range files {
			x, y := from, f
			if toGiven {
				x, y = f, to
			}
			status = max(status, d.compare(x, y))
		}
		return status
	case len(files) < 2:
		if len(files) == 0 {
			return usage(t, "missing operand after '%s'", t.Args[len(t.Args)-1])
		}
		return usage(t, "missing operand after '%s'", t.Args[len(t.Args)-1])
	case len(files) > 2:
		return usage(t, "extra operand '%s'", files[2])
	}
	return d.compare(files[0], files[1])
}

// contextArgs lets -U and -C take the next argument, as their long forms do
// not.
func contextArgs(args []string) []string {
	out := make([]string, 0, len(args))
	for i := 0; i < len(args); i++ {
		a := args[i]
		if a == "--" {
			return append(out, args[i:]...)
		}
		if n := len(a); n > 1 && a[0] == '-' && a[1] != '-' && (a[n-1] == 'U' || a[n-1] == 'C') && i+1 < len(args) &&
			!strings.ContainsAny(a[1:n-1], "WFLxXSIDUC") {
			i++
			a += args[i]
		}
		out = append(out, a)
	}
	return out
}

func (d *differ) options(a *command.Args) (status int, ok bool) {
	t := d.t
	fail := func(format string, args ...any) (int, bool) { return usage(t, format, args...), false }
	set := func(s style) bool {
		if d.style != unset && d.style != s {
			return false
		}
		d.style = s
		return true
	}
	var ignores, functions []string
	digits := ""
	for _, f := range a.Flags {
		good := true
		switch f.Key {
		case "normal":
			good = set(normal)
		case "q":
			d.brief = true
		case "s":
			d.same = true
		case "c", "u", "C", "U":
			if f.Key == "c" || f.Key == "C" {
				good = set(contextual)
			} else {
				good = set(unified)
			}
			n := 3
			if f.Given {
				var err error
				if n, err = length(f.Value); err != nil {
					return fail("invalid context length '%s'", f.Value)
				}
				d.context = max(d.context, n)
			}
			d.context = max(d.context, min(n, 3))
			if !f.Given {
				d.context = max(d.context, 3)
			}
			if f.Given && d.context > n {
				d.context = max(n, d.contextSaid(a))
			}
		case "e":
			good = set(edScript)
		case "f":
			good = set(forwardEd)
		case "n":
			good = set(rcs)
		case "y":
			good = set(sideBySide)
		case "D":
			good = set(ifdef)
			d.name = f.Value
		case "W":
			n, err := length(f.Value)
			if err != nil || n == 0 {
				return fail("invalid width '%s'", f.Value)
			}
			d.width = n
		case "tabsize":
			n, err := length(f.Value)
			if err != nil || n == 0 || n > 1<<20 {
				return fail("invalid tabsize '%s'", f.Value)
			}
			d.tab = n
		case "horizon-lines":
			n, err := length(f.Value)
			if err != nil {
				return fail("invalid horizon length '%s'", f.Value)
			}
			d.horizon = n
		case "left-column":
			d.leftColumn = true
		case "suppress-common-lines":
			d.suppress = true
		case "p":
			if d.style == unset {
				d.style = contextual
				d.context = max(d.context, 3)
			}
			functions = append(functions, "^[[:alpha:]$_]")
		case "F":
			functions = append(functions, f.Value)
		case "L":
			if len(d.labels) == 2 {
				return fail("too many file label options")
			}
			d.labels = append(d.labels, f.Value)
		case "t":
			d.expand = true
		case "T":
			d.initialTab = true
		case "suppress-blank-empty":
			d.noBlank = true
		case "r":
			d.recursive = true
		case "no-dereference":
			d.noFollow = true
		case "N":
			d.newFile = true
		case "P":
			d.newLeft = true
		case "ignore-file-name-case":
			d.foldNames = true
		case "no-ignore-file-name-case":
			d.foldNames = false
		case "x":
			d.exclude = append(d.exclude, pattern.Compile(f.Value, pattern.Options{}))
		case "X":
			b, err := command.ReadAll(t, f.Value)
			if err != nil {
				t.Errorf("%s: %s", f.Value, reason(err))
				return 2, false
			}
			for line := range bytes.SplitSeq(b, []byte{'\n'}) {
				if line = trimRight(line); len(line) > 0 {
					d.exclude = append(d.exclude, pattern.Compile(string(line), pattern.Options{}))
				}
			}
		case "S":
			d.start = f.Value
		case "i":
			d.fold = true
		case "E":
			if d.spaces < amount {
				d.spaces |= tabsExpand
			}
		case "Z":
			if d.spaces < amount {
				d.spaces |= trailing
			}
		case "b":
			d.spaces = max(d.spaces, amount)
		case "w":
			d.spaces = none
		case "B":
			d.ignoreBlank = true
		case "I":
			ignores = append(ignores, f.Value)
		case "a":
			d.text = true
		case "strip-trailing-cr":
			d.stripCR = true
		case "d":
			d.minimal = true
		case "color":
			switch f.Value {
			case "always":
				d.colour = true
			case "", "auto", "never":
			default:
				return fail("invalid color '%s'", f.Value)
			}
		case "0", "1", "2", "3", "4", "5", "6", "7", "8", "9":
			digits += f.Key
		}
		if !good {
			return fail("conflicting output style options")
		}
	}
	if digits != "" {
		n, err := length(digits)
		if err != nil {
			return fail("invalid context length '%s'", digits)
		}
		d.context = n
	}
	if d.style == unset {
		d.style = normal
		if d.suppress || d.leftColumn {
			d.style = normal
		}
	}
	if d.style != contextual && d.style != unified {
		d.context = 0
	}
	d.context = max(d.context, 0)
	d.switches = switches(t.Args[1:], a.Operands)
	var err error
	if d.ignore, err = expressions(t, ignores); err == nil {
		d.function, err = expressions(t, functions)
	}
	if err != nil {
		t.Errorf("%s", err)
		return 2, false
	}
	return 0, true
}

// switches writes the arguments that are no operands, each after a blank.
func switches(args, operands []string) string {
	args = slices.Clone(args)
	for i, k := len(args)-1, len(operands)-1; i >= 0 && k >= 0; i-- {
		if args[i] == operands[k] {
			args = slices.Delete(args, i, i+1)
			k--
		}
	}
	line := ""
	for _, a := range args {
		line += " " + glued(a)
	}
	return line
}

// glued quotes an argument for a shell if it needs that.
func glued(a string) string {
	if a == "" || strings.ContainsAny(a, " \t\n*?[]<>|&;()$`\"'\\!#~={}") {
		return quote.Single(a)
	}
	return a
}

// contextSaid is the greatest length of context that an option gives.
func (d *differ) contextSaid(a *command.Args) int {
	most := 0
	for _, f := range a.Flags {
		switch f.Key {
		case "c", "u":
			most = max(most, 3)
		case "C", "U":
			n := 3
			if f.Given {
				if k, err := length(f.Value); err == nil {
					n = k
				}
			}
			most = max(most, n)
		}
	}
	return most
}

func expressions(t *kernel.Task, list []string) (*regex.Regexp, error) {
	if list == nil {
		return nil, nil
	}
	return regex.CompileAny(list, regex.Options{Flavour: regex.GrepBRE, NoSub: true, Meter: meter{t}})
}

// A meter charges a task for matching.
type meter struct{ t *kernel.Task }

func (m meter) Step(n int) error {
	m.t.Step(n)
	return nil
}

func (m meter) Grow(n int) error {
	m.t.Grow(n)
	return nil
}

// length reads a number of lines or columns.
func length(s string) (int, error) {
	n, err := strconv.ParseUint(s, 10, 64)
	if errors.Is(err, strconv.ErrRange) {
		return 1 << 40, nil
	}
	return int(min(n, 1<<40)), err
}

// compare compares two operands.
func (d *differ) compare(x, y string) int {
	a, b := d.look(x), d.look(y)
	return d.pair(&a, &b, false)
}

func (d *differ) trouble(name string, err error) int {
	d.t.Errorf("%s: %s", name, reason(err))
	return 2
}

// pair compares two files or directories. inner says that they were found in
// directories.
func (d *differ) pair(a, b *side, inner bool) int {
	absent := func(s *side) bool { return s.err == linux.ENOENT && s.name != "-" }
	if !inner {
		if (d.newFile || d.newLeft) && absent(a) && !absent(b) {
			a.missing, a.err, a.info.Mode = true, nil, b.info.Mode
		}
		if d.newFile && absent(b) && a.err == nil && !a.missing {
			b.missing, b.err, b.info.Mode = true, nil, a.info.Mode
		}
		status := 0
		for _, s := range []*side{a, b} {
			if s.err != nil {
				status = d.trouble(s.name, s.err)
			}
		}
		if status != 0 {
			return status
		}
		if a.info.IsDir() != b.info.IsDir() {
			f, dir := a, b
			if a.info.IsDir() {
				f, dir = b, a
			}
			if f.name == "-" {
				d.t.Errorf("cannot compare '-' to a directory")
				return 2
			}
			*dir = d.look(command.JoinPath(dir.name, base(f.name)))
			if dir.err != nil {
				if absent(dir) && d.newFile {
					dir.missing, dir.err, dir.info.Mode = true, nil, f.info.Mode
				} else {
					return d.trouble(dir.name, dir.err)
				}
			}
		}
	}
	switch {
	case a.info.IsDir() && b.info.IsDir():
		if inner && !d.recursive {
			d.w.String("Common subdirectories: " + a.label + " and " + b.label + "\n")
			return 0
		}
		return d.directories(a, b)
	case a.info.IsLink() || b.info.IsLink():
		return d.links(a, b)
	case !a.missing && !b.missing && (a.info.IsDir() != b.info.IsDir() || inner && special(a.info) != special(b.info)):
		d.w.String("File " + a.label + " is a " + kind(a.info) + " while file " + b.label + " is a " + kind(b.info) + "\n")
		return 1
	case !a.missing && !b.missing && a.info.Ino == b.info.Ino && a.info.Dev == b.info.Dev && a.name != "-" && b.name != "-" && a.info.Ino != 0 && a.info.IsRegular() && (d.brief || d.suppress || d.style != sideBySide && d.style != ifdef):
		return d.identical(a, b)
	}
	return d.files(a, b, inner)
}

func special(i vfs.Info) uint32 {
	if i.IsRegular() {
		return 0
	}
	return i.Mode & linux.S_IFMT
}

func kind(i vfs.Info) string {
	switch i.Mode & linux.S_IFMT {
	case linux.S_IFREG:
		if i.Size == 0 {
			return "regular empty file"
		}
		return "regular file"
	case linux.S_IFDIR:
		return "directory"
	case linux.S_IFIFO:
		return "fifo"
	case linux.S_IFCHR:
		return "character special file"
	case linux.S_IFBLK:
		return "block special file"
	case linux.S_IFLNK:
		return "symbolic link"
	case linux.S_IFSOCK:
		return "socket"
	}
	return "weird file"
}

func (d *differ) links(a, b *side) int {
	if a.info.IsLink() && b.info.IsLink() {
		x, errX := d.t.View.Readlink(a.name)
		y, errY := d.t.View.Readlink(b.name)
		if errX == nil && errY == nil && x == y {
			return 0
		}
		d.w.String("Symbolic links " + a.label + " and " + b.label + " differ\n")
		return 1
	}
	d.w.String("File " + a.label + " is a " + kind(a.info) + " while file " + b.label + " is a " + kind(b.info) + "\n")
	return 1
}

func (d *differ) identical(a, b *side) int {
	if d.same {
		d.w.String("Files " + a.label + " and " + b.label + " are identical\n")
	}
	return 0
}

func base(path string) string {
	s := strings.TrimRight(path, "/")
	return s[strings.LastIndexByte(s, '/')+1:]
}

// files compares what two files hold.
func (d *differ) files(a, b *side, inner bool) int {
	t := d.t
	if a.name == "-" && b.name == "-" {
		return d.identical(a, b)
	}
	for _, s := range []*side{a, b} {
		if err := s.read(t); err != nil {
			return d.trouble(s.name, err)
		}
	}
	defer t.Shrink(0)
	equal := bytes.Equal(a.text, b.text)
	plain := d.spaces == allCount && !d.fold && !d.stripCR && !d.ignoreBlank && d.ignore == nil
	switch {
	case equal && (plain || d.style != sideBySide && d.style != ifdef):
		if d.style == sideBySide && !d.suppress || d.style == ifdef {
			break
		}
		return d.identical(a, b)
	case !d.text && (a.binary() || b.binary()):
		if d.brief {
			d.w.String("Files " + a.label + " and " + b.label + " differ\n")
		} else {
			d.w.String("Binary files " + a.label + " and " + b.label + " differ\n")
		}
		return 1
	case d.brief && plain:
		d.w.String("Files " + a.label + " and " + b.label + " differ\n")
		return 1
	}
	list := d.hunks(a, b)
	differs := false
	for i := range list {
		differs = differs || !list[i].trivial
	}
	if d.brief && differs {
		d.w.String("Files " + a.label + " and " + b.label + " differ\n")
		return 1
	}
	if differs && inner && !d.brief {
		d.w.String("diff" + d.switches + " " + glued(a.label) + " " + glued(b.label) + "\n")
	}
	if !d.brief && (differs || d.style == sideBySide || d.style == ifdef) {
		d.show(a, b, list)
	}
	if !differs {
		return d.identical(a, b)
	}
	return 1
}
