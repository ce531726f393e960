package expand

import (
	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
	"github.com/paddock-sandbox/paddock/internal/sim/pattern"
	"github.com/paddock-sandbox/paddock/internal/sim/regex"
	"github.com/paddock-sandbox/paddock/internal/sim/vfs"
)

// A meter counts the work of patterns for a task.
type meter struct{ t *kernel.Task }

func (m meter) Step(n int) error {
	m.t.Step(n)
	return nil
}

func (m meter) Grow(n int) error {
	m.t.Grow(n)
	return nil
}

// glob finds the names that match.
func (x *Expander) glob(pat string) ([]string, error) {
	f := x.flags
	o := pattern.GlobOptions{
		ExtGlob: f.ExtGlob, IgnoreCase: f.NoCaseGlob, Dots: f.DotGlob, DotDirs: f.DotDirs, Star: f.GlobStar,
		Bytes: x.Bytewise(), Meter: meter{x.task},
	}
	if ignore, ok := x.vars.Get("GLOBIGNORE"); ok && ignore != "" {
		o.Ignore = pattern.IgnorePatterns(ignore, f.ExtGlob)
	}
	return pattern.Glob(files{x.task}, pat, o)
}

// files shows a task's files to a glob.
type files struct{ t *kernel.Task }

func (f files) ReadDir(dir string) ([]pattern.Entry, error) {
	list, err := f.t.View.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	f.t.Traverse(len(list))
	out := make([]pattern.Entry, len(list))
	for i := range list {
		out[i].Name = list[i].Name
		switch info := &list[i].Info; {
		case info.IsDir():
			out[i].Kind = pattern.Directory
		case isLink(info):
			out[i].Kind = pattern.Link
		}
	}
	return out, nil
}

func isLink(i *vfs.Info) bool { return i.Mode&0o170000 == 0o120000 }

func (f files) Exists(path string) bool {
	_, err := f.t.View.Lstat(path)
	return err == nil
}

func (f files) IsDir(path string) bool {
	i, err := f.t.View.Stat(path)
	return err == nil && i.IsDir()
}

// A compiled pattern, with what it was compiled for.
type compiled struct {
	pattern *pattern.Pattern
	opt     pattern.Options
}

// maxPatterns is how many patterns are kept.
const maxPatterns = 64

// Compiled returns a pattern for a text, by the options of the shell; fold says
// that nocasematch counts.
func (x *Expander) Compiled(text string, fold bool) *pattern.Pattern {
	o := pattern.Options{ExtGlob: x.flags.ExtGlob, IgnoreCase: fold && x.flags.NoCaseMatch, Bytes: x.Bytewise()}
	if c, ok := x.patterns[text]; ok && c.opt == o {
		return c.pattern
	}
	p := pattern.Compile(text, o)
	if len(text) <= 256 {
		if x.patterns == nil || len(x.patterns) >= maxPatterns {
			x.patterns = make(map[string]*compiled, maxPatterns)
		}
		x.patterns[text] = &compiled{p, o}
	}
	return p
}

// MatchCond is Match for [[ ]], where extended patterns are always on.
func (x *Expander) MatchCond(pat, s string) (bool, error) {
	if x.flags.ExtGlob {
		return x.Match(pat, s)
	}
	x.flags.ExtGlob = true
	ok, err := x.Match(pat, s)
	x.flags.ExtGlob = false
	return ok, err
}

// Match reports whether a text matches a pattern that Pattern gave, as case asks.
func (x *Expander) Match(pat, s string) (bool, error) {
	return x.Compiled(pat, true).Match(s, meter{x.task})
}

// A regexKey is a regular expression, whether case counts, and whether a
// character is a byte.
type regexKey struct {
	text        string
	fold, bytes bool
}

// maxRegexes is how many regular expressions are kept.
const maxRegexes = 16

// Regexp returns a regular expression for =~. It is not to be used at the same
// time as what was given for the same text before.
func (x *Expander) Regexp(text string) (*regex.Regexp, error) {
	key := regexKey{text, x.flags.NoCaseMatch, x.Bytewise()}
	if r, ok := x.regexes[key]; ok {
		return r, nil
	}
	r, err := regex.Compile(text, regex.Options{Flavour: regex.Shell, IgnoreCase: key.fold, Bytes: key.bytes, Meter: meter{x.task}})
	if err != nil {
		return nil, err
	}
	if len(text) <= 1024 {
		if x.regexes == nil || len(x.regexes) >= maxRegexes {
			x.regexes = map[regexKey]*regex.Regexp{}
		}
		x.regexes[key] = r
	}
	return r, nil
}
