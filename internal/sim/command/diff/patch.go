package diff

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
	"github.com/paddock-sandbox/paddock/internal/sim/linux"
	"github.com/paddock-sandbox/paddock/internal/sim/vfs"
)

var patchSpec = &command.Spec{
	Name: "patch", Synopsis: "[OPTION]... [ORIGFILE [PATCHFILE]]", Exit: 2, NoTry: true, About: "Apply a diff file to an original.",
	Options: []command.Option{
		{Short: 'p', Long: "strip", Arg: command.Required, Name: "NUM", Help: "strip NUM leading components from file names"},
		{Short: 'F', Long: "fuzz", Arg: command.Required, Name: "LINES", Help: "set the fuzz factor to LINES for inexact matching"},
		{Short: 'l', Long: "ignore-whitespace", Help: "ignore white space changes between patch and input"},
		{Short: 'c', Long: "context", Help: "interpret the patch as a context difference"},
		{Short: 'e', Long: "ed", Help: "interpret the patch as an ed script"},
		{Short: 'n', Long: "normal", Help: "interpret the patch as a normal difference"},
		{Short: 'u', Long: "unified", Help: "interpret the patch as a unified difference"},
		{Short: 'N', Long: "forward", Help: "ignore patches that appear to be reversed or already applied"},
		{Short: 'R', Long: "reverse", Help: "assume patches were created with old and new files swapped"},
		{Short: 'i', Long: "input", Arg: command.Required, Name: "PATCHFILE", Help: "read patch from PATCHFILE instead of stdin"},
		{Short: 'o', Long: "output", Arg: command.Required, Name: "FILE", Help: "output patched files to FILE"},
		{Short: 'r', Long: "reject-file", Arg: command.Required, Name: "FILE", Help: "output rejects to FILE"},
		{Long: "reject-format", Arg: command.Required, Name: "FORMAT", Help: "create 'context' or 'unified' rejects"},
		{Short: 'D', Long: "ifdef", Arg: command.Required, Name: "NAME", Help: "(not supported)"},
		{Short: 'E', Long: "remove-empty-files", Help: "remove output files that are empty after patching"},
		{Short: 'Z', Long: "set-utc", Help: "(ignored)"}, {Short: 'T', Long: "set-time", Help: "(ignored)"},
		{Long: "quoting-style", Arg: command.Required, Help: "(ignored)"},
		{Short: 'b', Long: "backup", Help: "back up the original contents of each file"},
		{Long: "backup-if-mismatch", Help: "back up if the patch does not match exactly"},
		{Long: "no-backup-if-mismatch", Help: "back up mismatches only if otherwise requested"},
		{Short: 'V', Long: "version-control", Arg: command.Required, Name: "STYLE", Help: "(ignored)"},
		{Short: 'B', Long: "prefix", Arg: command.Required, Name: "PREFIX", Help: "prepend PREFIX to backup file names"},
		{Short: 'Y', Long: "basename-prefix", Arg: command.Required, Name: "PREFIX", Help: "prepend PREFIX to backup file basenames"},
		{Short: 'z', Long: "suffix", Arg: command.Required, Name: "SUFFIX", Help: "append SUFFIX to backup file names"},
		{Short: 'g', Long: "get", Arg: command.Required, Name: "NUM", Help: "(ignored)"},
		{Short: 't', Long: "batch", Help: "ask no questions; skip bad-Prereq patches; assume reversed"},
		{Short: 'f', Long: "force", Help: "like -t, but ignore bad-Prereq patches, and assume unreversed"},
		{Short: 's', Long: "quiet", Help: "work silently unless an error occurs"}, {Long: "silent", Help: "same as -s"},
		{Long: "verbose", Help: "output extra information about the work being done"},
		{Long: "dry-run", Help: "do not actually change any files; just print what would happen"},
		{Long: "posix", Help: "conform to the POSIX standard"},
		{Short: 'd', Long: "directory", Arg: command.Required, Name: "DIR", Help: "change the working directory to DIR first"},
		{Long: "binary", Help: "(ignored)"}, {Long: "read-only", Arg: command.Required, Name: "BEHAVIOR", Help: "how to handle read-only input files"},
		{Long: "merge", Arg: command.Optional, Help: "(not supported)"}, {Long: "follow-symlinks", Help: "follow symbolic links"}, {Short: 'v', Help: "output version information"},
	},
}

// A patcher is a run of patch.
type patcher struct {
	t       *kernel.Task
	strip   int // -1 is the last part only
	fuzz    int
	loose   bool
	forward bool
	reverse bool
	batch   bool
	force   bool
	quiet   bool
	verbose bool
	dry     bool
	posix   bool
	remove  bool
	backup  bool
	match   bool // back up what did not match exactly
	out     string
	reject  string
	format  style
	before  string // of a backup's name
	prefix  string // of its last part
	suffix  string
	file    string // what is patched, if that is given
	kept    map[string]bool
	status  int

	lines  [][]byte // of the file
	result [][]byte
	frozen int // lines of the file that are in result
	offset int
}

func runPatch(t *kernel.Task) int {
	a, status, ok := patchSpec.Parse(t)
	if !ok {
		if status != 0 {
			return tryHelp(t)
		}
		return 0
	}
	p := &patcher{t: t, strip: -1, fuzz: 2, match: true, suffix: ".orig", kept: map[string]bool{}}
	input := ""
	fatal := func(format string, args ...any) int {
		t.Errorf("**** "+format, args...)
		return 2
	}
	named := false
	for _, f := range a.Flags {
		switch f.Key {
		case "p":
			n, err := strconv.Atoi(f.Value)
			if err != nil || n < 0 {
				return fatal("strip count %s is not a number", f.Value)
			}
			p.strip = n
		case "F":
			n, err := strconv.Atoi(f.Value)
			if err != nil || n < 0 {
				return fatal("fuzz factor %s is not a number", f.Value)
			}
			p.fuzz = n
		case "l":
			p.loose = true
		case "N":
			p.forward = true
		case "R":
			p.reverse = true
		case "i":
			input = f.Value
		case "o":
			p.out = f.Value
		case "r":
			p.reject = f.Value
		case "reject-format":
			p.format = map[string]style{"context": contextual, "unified": unified}[f.Value]
		case "E":
			p.remove = true
		case "b":
			p.backup = true
		case "backup-if-mismatch":
			p.match = true
		case "no-backup-if-mismatch":
			p.match = false
		case "B":
			p.before, named = f.Value, true
		case "Y":
			p.prefix, named = f.Value, true
		case "z":
			p.suffix, named = f.Value, true
		case "t":
			p.batch = true
		case "f":
			p.force = true
		case "s", "silent":
			p.quiet = true
		case "verbose":
			p.verbose = true
		case "dry-run":
			p.dry = true
		case "posix":
			p.posix = true
		case "d":
			if err := t.View.Chdir(f.Value); err != nil {
				return fatal("Can't change to directory %s : %s", f.Value, reason(err))
			}
		case "v":
			say(t, "GNU patch (Paddock)")
			return 0
		case "e", "D", "merge":
			return fatal("the option %s is not supported", f.Spelt)
		}
	}
	if named && !a.Has("z") {
		p.suffix = ""
	}
	switch n := len(a.Operands); {
	case n > 2:
		return usage(t, "%s: extra operand", a.Operands[2])
	case n == 2:
		input = a.Operands[1]
		fallthrough
	case n == 1:
		p.file = a.Operands[0]
	}
	if input == "" {
		input = "-"
	}
	text, err := command.ReadAll(t, input)
	if err != nil {
		return fatal("Can't open patch file %s : %s", input, reason(err))
	}
	r := &patchReader{lines: split(t, text)}
	some := false
	for {
		c := r.next()
		if c == nil {
			break
		}
		t.Step(len(c.hunks))
		some = true
		if r.err != "" && len(c.hunks) == 0 {
			p.announce(p.target(c), c)
		} else if !p.apply(c) {
			return 2
		}
		if r.err != "" {
			break
		}
	}
	switch {
	case r.err != "":
		return fatal("%s", r.err)
	case !some && len(bytes.TrimSpace(text)) > 0:
		return fatal("Only garbage was found in the patch input.")
	}
	return p.status
}

// say writes a line to standard output.
func say(t *kernel.Task, s string) { _, _ = t.Out().WriteString(s + "\n") }

func (p *patcher) say(format string, args ...any) { say(p.t, fmt.Sprintf(format, args...)) }

// ask asks, and gives the answer or the default where nobody can answer.
func (p *patcher) ask(question string) string {
	_, _ = p.t.Out().WriteString(question)
	d, err := p.t.Open("/dev/tty", linux.O_RDONLY, 0)
	if err == nil {
		d.Hold()
		defer d.Drop()
		_ = p.t.Flush() // the end of the program tells of it
		b := make([]byte, 256)
		if n, err := d.File.Read(p.t, b); err == nil && n > 0 {
			return strings.TrimSpace(string(b[:n]))
		}
	}
	_, _ = p.t.Out().WriteString("\n")
	return ""
}

// stripped takes leading parts away from a name. empty is that there were not
// enough.
func (p *patcher) stripped(name string) string {
	if name == "" || name == "/dev/null" {
		return name
	}
	if p.strip < 0 {
		return base(name)
	}
	for range p.strip {
		i := strings.IndexByte(name, '/')
		if i < 0 {
			return ""
		}
		name = strings.TrimLeft(name[i:], "/")
	}
	return name
}

// safe reports whether a name stays below the working directory.
func safe(name string) bool {
	if strings.HasPrefix(name, "/") {
		return false
	}
	for part := range strings.SplitSeq(name, "/") {
		if part == ".." {
			return false
		}
	}
	return true
}

// target finds the file that is patched; empty is none.
func (p *patcher) target(c *change) string {
	if p.file != "" {
		return p.file
	}
	best, exists := "", false
	better := func(x, y string) bool {
		if n, m := strings.Count(x, "/"), strings.Count(y, "/"); n != m {
			return n < m
		}
		if n, m := len(base(x)), len(base(y)); n != m {
			return n < m
		}
		return len(x) < len(y)
	}
	names := c.names[:]
	if c.renameFrom != "" {
		names = []string{"a/" + c.renameFrom}
		if p.strip == 0 || p.strip < 0 {
			names = []string{c.renameFrom}
		}
		if p.reverse {
			names[0] = strings.Replace(names[0], c.renameFrom, c.renameTo, 1)
		}
	}
	for _, n := range names {
		n = p.stripped(n)
		if n == "" || n == "/dev/null" {
			continue
		}
		if !safe(n) {
			if _, err := p.t.View.Stat(n); err == nil {
				p.say("Ignoring potentially dangerous file name %s", n)
			}
			continue
		}
		_, err := p.t.View.Stat(n)
		is := err == nil
		if best == "" || is && !exists || is == exists && better(n, best) {
			best, exists = n, is
		}
	}
	if best != "" && !exists && !p.creates(c) && !p.mayCreate(c) {
		return ""
	}
	return best
}

// creates reports whether a change makes its file.
func (p *patcher) creates(c *change) bool {
	if c.created && !p.reverse || c.deleted && p.reverse {
		return true
	}
	if len(c.hunks) == 0 {
		return false
	}
	n := 0
	if p.reverse {
		n = 1
	}
	if c.names[n] == "/dev/null" {
		return true
	}
	return p.mayCreate(c) && epoch(c.stamps[n])
}

// mayCreate reports whether a change takes its file for empty. Without the time
// of a file that is not there, it may mean a file that is there and empty too.
func (p *patcher) mayCreate(c *change) bool {
	if len(c.hunks) == 0 {
		return false
	}
	if p.reverse {
		return c.hunks[0].to == 0
	}
	return c.hunks[0].from == 0
}

// deletes reports whether a change removes its file.
func (p *patcher) deletes(c *change) bool {
	if c.deleted && !p.reverse || c.created && p.reverse {
		return true
	}
	n := 1
	if p.reverse {
		n = 0
	}
	return c.names[n] == "/dev/null" || epoch(c.stamps[n])
}

// epoch tells the time of a file that is not there.
func epoch(stamp string) bool {
	return strings.HasPrefix(strings.TrimSpace(stamp), "1970-01-01 00:00:00")
}

func (p *patcher) announce(name string, c *change) {
	if p.quiet || name == "" {
		return
	}
	verb := "patching"
	if p.dry {
		verb = "checking"
	}
	switch {
	case p.out != "":
		p.say("%s file %s (read from %s)", verb, command.QuoteFile(p.out), command.QuoteFile(name))
	case c.renameTo != "" && !c.copied:
		p.say("%s file %s (renamed from %s)", verb, command.QuoteFile(p.renamed(c)), command.QuoteFile(name))
	case c.renameTo != "":
		p.say("%s file %s (copied from %s)", verb, command.QuoteFile(p.renamed(c)), command.QuoteFile(name))
	default:
		p.say("%s file %s", verb, command.QuoteFile(name))
	}
}

func (p *patcher) renamed(c *change) string {
	to := c.renameTo
	if p.reverse {
		to = c.renameFrom
	}
	if p.strip > 0 {
		return p.stripped("b/" + to)
	}
	return to
}

// skipped counts the hunks of a change that is not applied.
func (p *patcher) skipped(n int) {
	p.status = 1
	p.say("%d out of %d hunk%s ignored", n, n, plural(n))
}

func plural(n int) string {
	if n == 1 {
		return ""
	}
	return "s"
}

// apply applies a change; false is that nothing more can be done.
func (p *patcher) apply(c *change) bool {
	t := p.t
	name := p.target(c)
	if name == "" {
		p.say("can't find file to patch at input line %d", c.line)
		if p.strip < 0 && strings.Contains(c.names[0]+c.names[1], "/") {
			p.say("Perhaps you should have used the -p or --strip option?")
		} else {
			p.say("Perhaps you used the wrong -p or --strip option?")
		}
		p.say("The text leading up to this was:\n--------------------------")
		for _, l := range c.lead {
			p.say("|%s", l)
		}
		p.say("--------------------------")
		if !p.force && !p.batch {
			if name = p.ask("File to patch: "); name == "" && p.ask("Skip this patch? [y] ") == "n" {
				return true
			}
		} else {
			p.say("No file to patch.  Skipping patch.")
		}
		if name == "" {
			if !p.force && !p.batch {
				p.say("Skipping patch.")
			}
			p.skipped(len(c.hunks))
			return true
		}
	}
	text, info, err := p.load(name)
	exists := err == nil
	if err != nil && err != linux.ENOENT {
		t.Errorf("**** Can't open file %s : %s", name, reason(err))
		return false
	}
	if err == nil && !info.IsRegular() {
		p.say("File %s is not a regular file -- refusing to patch", command.QuoteFile(name))
		p.status = 1
		p.say("%d out of %d hunk%s ignored -- saving rejects to file %s.rej", len(c.hunks), len(c.hunks), plural(len(c.hunks)), name)
		return true
	}
	reversed := p.reverse
	if p.creates(c) && len(text) > 0 && !p.present(name, c) {
		return true
	}
	p.announce(name, c)
	p.lines, p.result, p.frozen, p.offset = split(t, text), nil, 0, 0
	failed, inexact := p.hunks(c)
	p.result = append(p.result, p.lines[min(p.frozen, len(p.lines)):]...)
	if failed != nil && failed.skip {
		p.reverse = reversed
		p.status = 1
		p.rejects(c, name, failed.list, "ignored")
		return true
	}
	ok := p.store(c, name, text, info, exists, inexact || failed != nil)
	if failed != nil {
		p.status = 1
		p.rejects(c, name, failed.list, "FAILED")
	}
	p.reverse = reversed
	return ok
}

// present asks what to do about a file that a change would make.
func (p *patcher) present(name string, c *change) bool {
	text, _, err := p.load(name)
	if err != nil || len(text) == 0 {
		return true
	}
	switch {
	case p.forward:
		p.say("The next patch would create the file %s,\nwhich already exists!  Skipping patch.", name)
	case p.batch:
		p.say("The next patch would create the file %s,\nwhich already exists!  Assuming -R.", name)
		p.reverse = !p.reverse
		return true
	case p.force:
		return true
	default:
		_, _ = p.t.Out().WriteString("The next patch would create the file " + name + ",\n")
		if p.ask("which already exists!  Assume -R? [n] ") == "y" {
			p.reverse = !p.reverse
			return true
		}
		if p.ask("Apply anyway? [n] ") == "y" {
			return true
		}
		p.say("Skipping patch.")
	}
	p.skipped(len(c.hunks))
	return false
}

func (p *patcher) load(name string) ([]byte, vfs.Info, error) {
	i, err := p.t.View.Stat(name)
	if err != nil {
		return nil, i, err
	}
	if !i.IsRegular() {
		return nil, i, nil
	}
	b, err := command.ReadAll(p.t, name)
	return b, i, err
}
