package grep

import (
	"strings"

	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
	"github.com/paddock-sandbox/paddock/internal/sim/pattern"
	"github.com/paddock-sandbox/paddock/internal/sim/regex"
	"github.com/paddock-sandbox/paddock/internal/sim/vfs"
)

// A meter charges a task; what it cannot pay ends the task.
type meter struct{ t *kernel.Task }

func (m meter) Step(n int) error {
	m.t.Step(n)
	return nil
}

func (m meter) Grow(n int) error {
	m.t.Grow(n)
	return nil
}

// file takes patterns from a file, one a line.
func (p *parser) file(name string) bool {
	b, err := command.ReadAll(p.t, name)
	if err != nil {
		return p.fail("%s: %s", name, vfs.Message(err))
	}
	p.given = true
	if len(b) > 0 {
		p.keys = append(p.keys, strings.Split(strings.TrimSuffix(string(b), "\n"), "\n")...)
	}
	return true
}

// compile makes the expression. Where it is wrong, it has said so.
func compile(t *kernel.Task, o *options) (*regex.Regexp, int) {
	if o.syntax == "P" && len(o.patterns) > 1 {
		t.Errorf("the -P option only supports a single pattern")
		return nil, trouble
	}
	seen := make(map[string]bool, len(o.patterns))
	keys := make([]string, 0, len(o.patterns))
	for _, k := range o.patterns {
		if !seen[k] {
			seen[k] = true
			keys = append(keys, k)
		}
	}
	re, err := regex.CompileAny(keys, regex.Options{
		Flavour: o.flavour(), IgnoreCase: o.fold, Lines: true, NULSep: o.nul, NoSub: true,
		WholeLine: o.line, Word: o.word && !o.line, Multiline: o.nul && o.syntax == "P",
		Bytes: o.bytes, Meter: meter{t},
	})
	if err != nil {
		t.Errorf("%s", err)
		return nil, trouble
	}
	for _, w := range re.Warnings() {
		// Debian's grep, which the tools are compared with, has this one
		// taken out, as scripts are full of it.
		if !strings.HasPrefix(w, `stray \`) {
			t.Errorf("warning: %s", w)
		}
	}
	return re, 0
}

// A globs is a list of which the last that matches decides.
type globs []glob

type glob struct {
	p       *pattern.Pattern
	include bool
}

func (g *globs) add(text string, include bool) {
	*g = append(*g, glob{pattern.Compile(text, pattern.Options{}), include})
}

// skips says whether a file is left out. Of a name that was given, each part
// after a slash counts as well.
func (g globs) skips(m pattern.Meter, name string, given bool) bool {
	if len(g) == 0 {
		return false
	}
	for i := len(g) - 1; i >= 0; i-- {
		if g[i].matches(m, name, given) {
			return !g[i].include
		}
	}
	return g[0].include
}

func (g *glob) matches(m pattern.Meter, name string, given bool) bool {
	for {
		if ok, err := g.p.Match(name, m); ok && err == nil {
			return true
		}
		i := strings.IndexByte(name, '/')
		if !given || i < 0 {
			return false
		}
		name = strings.TrimLeft(name[i:], "/")
	}
}

// An exclusion says what is not searched.
type exclusion struct{ files, dirs globs }

// excludeFrom takes patterns of files to skip from a file.
func (p *parser) excludeFrom(name string) bool {
	b, err := command.ReadAll(p.t, name)
	if err != nil {
		return p.fail("%s: %s", name, vfs.Message(err))
	}
	for line := range strings.SplitSeq(string(b), "\n") {
		if line = strings.TrimRight(line, " \t\r\v\f"); line != "" {
			p.o.excluded.files.add(line, false)
		}
	}
	return true
}
