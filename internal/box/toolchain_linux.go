package box

import (
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/paddock-sandbox/paddock/internal/boxinit"
	"github.com/paddock-sandbox/paddock/internal/hostroot"
)

// shownMax bounds the mounts of tool chains. A version manager may have installed much.
const shownMax = 1000

// toolchains shows the tool chains of homes that are in PATH, read-only. Other parts of
// homes are hidden.
func (l *Layout) toolchains(user []boxinit.Mount) {
	s := shown{layout: l, user: user, parents: map[string]bool{}}
	for _, dir := range filepath.SplitList(l.env["PATH"]) {
		if !filepath.IsAbs(dir) {
			continue
		}
		real, err := filepath.EvalSymlinks(dir)
		if err != nil {
			continue
		}
		home, ok := homeOf(real, l.env["HOME"])
		if !ok {
			continue
		}
		named := strings.TrimPrefix(filepath.Clean(dir), home+"/")
		if dir = strings.TrimPrefix(real, home+"/"); dir == named || sameChain(home, dir, named) {
			s.chain(home, dir, dir != named)
		}
	}
	l.partial = s.parents
}

// shown is what tool chains show while they are looked for.
type shown struct {
	layout  *Layout
	user    []boxinit.Mount // those of the spec
	paths   []string
	parents map[string]bool // directories of which a part is shown
}

// sameChain reports whether two directories of a home belong to one tool chain. A link in a
// directory of PATH may be the work of a sandbox whose workspace holds that directory, such as
// one of a virtual environment. It must not show other parts of the home to the next sandbox.
func sameChain(home, dir, named string) bool {
	_, is := chainOf(home, dir)
	_, said := chainOf(home, named)
	return is != "" && is == said
}

// chain shows the tool chain of a directory in PATH, which is named relative to its home.
// linked means that PATH names it by a link, such as the current version of a program.
func (s *shown) chain(home, dir string, linked bool) {
	c, root := chainOf(home, dir)
	for _, name := range c.shows {
		s.each(home, name)
	}
	if c.loose && dir == root {
		s.programs(filepath.Join(home, dir))
	}
	// In other directories of PATH are programs whose surroundings may be anything. The top
	// of a tool chain is not a directory of programs.
	if at := filepath.Join(home, dir); !linked && dir != root && !slices.ContainsFunc(s.paths, func(p string) bool { return hostroot.Within(at, p) }) {
		s.show(at)
	}
}

// chainOf returns the chain that a directory belongs to, and the entry of in that says so.
func chainOf(home, dir string) (best chain, root string) {
	for _, c := range chains() {
		if c.only != "" {
			if _, err := os.Lstat(filepath.Join(home, c.only)); err != nil {
				continue
			}
		}
		for _, in := range c.in {
			if hostroot.Within(dir, in) && len(in) > len(root) {
				best, root = c, in
			}
		}
	}
	return best, root
}

// each shows every match of a pattern below dir.
func (s *shown) each(dir, pattern string) {
	part, rest, more := strings.Cut(pattern, "/")
	if !strings.Contains(part, "*") {
		if next := filepath.Join(dir, part); more {
			s.each(next, rest)
		} else {
			s.show(next)
		}
		return
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		if ok, err := path.Match(part, e.Name()); err != nil || !ok {
			continue
		}
		switch next := filepath.Join(dir, e.Name()); {
		case e.Type()&os.ModeSymlink != 0: // a name of another version, for example
			s.show(next)
		case e.IsDir() && more:
			s.each(next, rest)
		case e.IsDir():
			s.show(next)
		}
	}
}

// programs shows the programs that lie in a directory itself.
func (s *shown) programs(dir string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o111 != 0 {
			s.show(filepath.Join(dir, e.Name()))
		}
	}
}

// show adds the mount of a file or directory, or a link in the place of one.
func (s *shown) show(name string) {
	st, err := os.Lstat(name)
	if err != nil || len(s.paths) >= shownMax || slices.ContainsFunc(s.paths, func(p string) bool { return hostroot.Within(name, p) }) {
		return
	}
	if slices.ContainsFunc(s.user, func(m boxinit.Mount) bool { return hostroot.Within(name, m.Target) }) {
		return // already shown by the spec
	}
	if real, err := filepath.EvalSymlinks(filepath.Dir(name)); err != nil || real != filepath.Dir(name) {
		return // behind a link is another place, which PATH did not name
	}
	m := boxinit.Mount{Kind: boxinit.MountBind, Target: name, Source: name, Maybe: true}
	switch mode := st.Mode(); {
	case mode&os.ModeSymlink != 0:
		to, err := os.Readlink(name)
		if err != nil {
			return
		}
		m = boxinit.Mount{Kind: boxinit.MountLink, Target: name, Source: to}
	case mode.IsRegular():
		m.IsFile = true
	case !mode.IsDir():
		return
	}
	s.paths = append(s.paths, name)
	s.parents[filepath.Dir(name)] = true
	s.layout.Add(m)
}

// homeOf returns the home that contains a path.
func homeOf(path, own string) (string, bool) {
	homes := []string{"/root", own}
	if rest, ok := strings.CutPrefix(path, "/home/"); ok {
		if name, _, ok := strings.Cut(rest, "/"); ok {
			homes = append(homes, "/home/"+name)
		}
	}
	for _, h := range homes {
		if h = filepath.Clean(h); filepath.IsAbs(h) && h != "/" && strings.HasPrefix(path, h+"/") {
			return h, true
		}
	}
	return "", false
}
