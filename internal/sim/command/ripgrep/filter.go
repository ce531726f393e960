package ripgrep

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/command/ripgrep/gitignore"
	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
	"github.com/paddock-sandbox/paddock/internal/sim/vfs"
)

// A filter says which files are searched.
type filter struct {
	t *kernel.Task
	o *options

	cwd     string
	globs   *gitignore.Rules // those of -g, in which ! leaves out
	wants   bool             // some glob of -g names what is wanted
	given   []*gitignore.Rules
	global  *gitignore.Rules
	known   []fileType
	wanted  []*gitignore.Glob // of -t
	refused []*gitignore.Glob // of -T
	typed   bool              // there was a -t
	above   map[string]*level
}

// A level is a directory with what its own files say.
type level struct {
	dir     string // absolute, without a slash at its end
	parent  *level
	custom  *gitignore.Rules // .rgignore
	dot     *gitignore.Rules // .ignore
	git     *gitignore.Rules // .gitignore
	exclude *gitignore.Rules // .git/info/exclude
	repo    bool             // there is a .git
	inRepo  bool             // here or above
}

// maxIgnoreFile is how much of a file of rules is read.
const maxIgnoreFile = 4 << 20

func (f *filter) prepare() error {
	t, o := f.t, f.o
	f.above = map[string]*level{}
	cwd, err := t.View.Getwd()
	if err != nil {
		return fmt.Errorf("current directory: %s", vfs.Message(err))
	}
	f.cwd = cwd
	f.globs = &gitignore.Rules{}
	for _, g := range o.globs {
		// In these a ! is the other way round.
		text, not := strings.CutPrefix(g.text, "!")
		if !not {
			text = "!" + text
			f.wants = true
		}
		if !f.globs.Add(text, g.fold) {
			return fmt.Errorf("error parsing glob '%s': it is malformed", g.text)
		}
	}
	if !o.noFiles {
		for _, name := range o.ignoreFiles {
			b, err := t.View.ReadFile(name, maxIgnoreFile)
			if err != nil {
				t.Errorf("%s: %s", name, vfs.Message(err)) // and go on, as rg does
				continue
			}
			f.given = append(f.given, gitignore.Parse(string(b), o.fold))
		}
	}
	if !o.noGlobal && !o.noVCS {
		dir := t.Getenv("XDG_CONFIG_HOME")
		if dir == "" {
			dir = t.Getenv("HOME") + "/.config"
		}
		f.global = f.rules(&t.View, dir+"/git/ignore")
	}
	return f.prepareTypes()
}

// rules reads a file of rules, if it is there.
func (f *filter) rules(v *vfs.View, name string) *gitignore.Rules {
	b, err := v.ReadFile(name, maxIgnoreFile)
	if err != nil {
		return nil
	}
	f.t.Grow(4 * len(b))
	return gitignore.Parse(string(b), f.o.fold)
}

// enter makes the level of a directory.
func (f *filter) enter(v *vfs.View, name, abs string, parent *level) *level {
	o := f.o
	l := &level{dir: abs, parent: parent}
	in := name + "/"
	if !o.noIgnore {
		l.custom = f.rules(v, in+".rgignore")
	}
	if !o.noDot {
		l.dot = f.rules(v, in+".ignore")
	}
	if o.noVCS {
		return l
	}
	_, err := v.Lstat(in + ".git")
	l.repo = err == nil
	l.inRepo = l.repo || o.noGit || parent != nil && parent.inRepo
	l.git = f.rules(v, in+".gitignore")
	if l.repo && !o.noExclude {
		l.exclude = f.rules(v, in+".git/info/exclude")
	}
	return l
}

// outside makes the levels of the directories above one.
func (f *filter) outside(abs string) *level {
	if f.o.noParent || abs == "/" || abs == "" {
		return nil
	}
	dir := path.Dir(abs)
	if l, ok := f.above[dir]; ok {
		return l
	}
	f.t.Step(1)
	l := f.enter(&f.t.View, strings.TrimSuffix(dir, "/"), strings.TrimSuffix(dir, "/"), f.outside(dir))
	f.above[dir] = l
	return l
}

// absolute gives the name of a file from the root.
func (f *filter) absolute(name string) string {
	if !strings.HasPrefix(name, "/") {
		name = f.cwd + "/" + name
	}
	return path.Clean(name)
}

// leaves says whether a file of a directory is left out.
func (f *filter) leaves(l *level, name, abs string, dir bool) bool {
	if !f.globs.Empty() {
		rel := strings.TrimPrefix(strings.TrimPrefix(abs, f.cwd), "/")
		switch f.globs.Match(rel, dir) {
		case gitignore.Ignored:
			return true
		case gitignore.Kept:
			return false
		case gitignore.None:
		}
		if f.wants && !dir {
			return true
		}
	}
	kept := false
	switch f.ruled(l, abs, dir) {
	case gitignore.Ignored:
		return true
	case gitignore.Kept:
		kept = true
	case gitignore.None:
	}
	if !dir && (f.typed || len(f.refused) > 0) {
		switch {
		case matchAny(f.refused, name), f.typed && !matchAny(f.wanted, name):
			return true
		case f.typed:
			kept = true
		}
	}
	return !kept && !f.o.hidden && strings.HasPrefix(name, ".")
}

func matchAny(list []*gitignore.Glob, name string) bool {
	for _, g := range list {
		if g.Match(name) {
			return true
		}
	}
	return false
}

// ruled says what the files of rules say. Each kind of file outranks the next
// one, and what is nearer outranks what is above.
func (f *filter) ruled(l *level, abs string, dir bool) gitignore.Verdict {
	var custom, dot, git, exclude gitignore.Verdict
	inRepo := l != nil && l.inRepo
	past := false // beyond the repository
	for at := l; at != nil; at = at.parent {
		f.t.Step(1 + (at.custom.Len()+at.dot.Len()+at.git.Len()+at.exclude.Len())>>2)
		rel := strings.TrimPrefix(abs[len(at.dir):], "/")
		if custom == gitignore.None {
			custom = at.custom.Match(rel, dir)
		}
		if dot == gitignore.None {
			dot = at.dot.Match(rel, dir)
		}
		if inRepo && !past {
			if git == gitignore.None {
				git = at.git.Match(rel, dir)
			}
			if exclude == gitignore.None {
				exclude = at.exclude.Match(rel, dir)
			}
		}
		past = past || at.repo
	}
	for _, v := range []gitignore.Verdict{custom, dot, git, exclude} {
		if v != gitignore.None {
			return v
		}
	}
	rel := strings.TrimPrefix(strings.TrimPrefix(abs, f.cwd), "/")
	if inRepo {
		if v := f.global.Match(rel, dir); v != gitignore.None {
			return v
		}
	}
	for i := len(f.given) - 1; i >= 0; i-- {
		if v := f.given[i].Match(rel, dir); v != gitignore.None {
			return v
		}
	}
	return gitignore.None
}

// prepareTypes settles which types there are and which are wanted.
func (f *filter) prepareTypes() error {
	changed := false
	for _, c := range f.o.types {
		changed = changed || c.what == 'a' || c.what == 'c'
	}
	if len(f.o.types) == 0 && !f.o.typeList {
		return nil
	}
	f.known = types()
	if changed {
		if err := f.changeTypes(); err != nil {
			return err
		}
	}
	for _, c := range f.o.types {
		if c.what != 't' && c.what != 'T' {
			continue
		}
		f.typed = f.typed || c.what == 't'
		found := false
		for _, k := range f.known {
			if k.name != c.text && c.text != "all" {
				continue
			}
			found = true
			for _, text := range k.globs {
				g, ok := gitignore.Compile(text, false)
				if !ok {
					return fmt.Errorf("error parsing glob '%s': it is malformed", text)
				}
				if c.what == 't' {
					f.wanted = append(f.wanted, g)
				} else {
					f.refused = append(f.refused, g)
				}
			}
		}
		if !found {
			return fmt.Errorf("unrecognized file type: %s", c.text)
		}
	}
	return nil
}

func (f *filter) changeTypes() error {
	for _, c := range f.o.types {
		switch c.what {
		case 'c':
			if i := find(f.known, c.text); i >= 0 {
				f.known = slices.Delete(f.known, i, i+1)
			}
		case 'a':
			name, text, ok := strings.Cut(c.text, ":")
			if !ok || name == "" || text == "" {
				return fmt.Errorf("invalid definition (format is type:glob, e.g., html:*.html)")
			}
			add := []string{text}
			if others, ok := strings.CutPrefix(text, "include:"); ok {
				add = nil
				for _, other := range strings.Split(others, ",") {
					i := find(f.known, other)
					if i < 0 {
						return fmt.Errorf("unrecognized file type: %s", other)
					}
					add = append(add, f.known[i].globs...)
				}
			}
			i := find(f.known, name)
			if i < 0 {
				f.known = append(f.known, fileType{name: name})
				i = len(f.known) - 1
			}
			f.known[i].globs = append(f.known[i].globs, add...)
		}
	}
	return nil
}

func find(list []fileType, name string) int {
	for i := range list {
		if list[i].name == name {
			return i
		}
	}
	return -1
}

func (f *filter) listTypes(w *command.Writer) {
	for _, k := range f.known {
		if len(k.globs) > 0 {
			w.String(k.name + ": " + strings.Join(k.globs, ", ") + "\n")
		}
	}
}
