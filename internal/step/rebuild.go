package step

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"math"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Rebuildable reports whether a path is, or lies in, a directory that tools rebuild, by its names alone: such as
// node_modules. Other directories count by a mark in them or beside them: target beside Cargo.toml or pom.xml, directories of
// virtual environments of Python, and directories with a CACHEDIR.TAG. No root counts, nor what holds a repository.
func Rebuildable(path string) bool {
	for name := range strings.SplitSeq(path, "/") {
		if rebuilt(name) {
			return true
		}
	}
	return false
}

// rebuilt reports whether each directory of a name is rebuilt by tools.
func rebuilt(name string) bool {
	switch name {
	case "node_modules", "__pycache__", ".tox", ".nox", ".mypy_cache", ".ruff_cache", ".pytest_cache", ".gradle", ".next":
		return true
	}
	return false
}

// cacheTag is how the file CACHEDIR.TAG begins in a cache: see https://bford.info/cachedir/.
const cacheTag = "Signature: 8a477f597d28d172789f06886806bc55"

const whyRebuilt = "tools rebuild it: its contents are not kept"

// cache returns the outermost directory that tools rebuild and that a path of the beginning of the step is, or lies in.
// Marks that a step made do not count, because with them a sandbox could choose what is not kept. With deep false the path
// itself does not count.
func (r *Recorder) cache(was key, deep bool) (dir key, ok bool) {
	path, depth := was.path, 0
	for i := 0; i <= len(path); i++ {
		if i < len(path) && path[i] != '/' {
			continue
		}
		if i == len(path) && !deep {
			break
		}
		d := key{was.root, path[:i]}
		name := d.path[strings.LastIndexByte(d.path, '/')+1:]
		if depth++; depth > maxJudged && !rebuilt(name) {
			continue
		}
		is, known := r.caches[d]
		if !known && (r.judged < maxJudgedBytes || rebuilt(name)) {
			var dir bool
			is, dir = r.judge(d)
			if dir && r.judged < maxJudgedBytes {
				r.judged += len(d.path) + 100
				r.caches[key{d.root, strings.Clone(d.path)}] = is
			}
		}
		if is {
			return d, true
		}
	}
	return key{}, false
}

// Bounds of looks into directories. Other ones count by their names only.
const (
	maxJudged      = 32       // levels
	maxJudgedBytes = 32 << 20 // of memory for what was found
)

// What lies in a directory that people write, and tools do not rebuild.
var (
	repositories = []string{".git", ".hg", ".jj", ".svn"}
	sources      = []string{
		"src", "go.mod", "Cargo.toml", "package.json", "pyproject.toml", "setup.py", "pom.xml", "build.gradle", "Makefile", "CMakeLists.txt", "README.md",
	}
	venv = []string{"bin", "include", "lib", "lib64", "Include", "Lib", "Scripts"} // of a virtual environment of Python
)

// judge looks whether tools rebuild a directory, because of its name, or of a mark in it or beside it. When in doubt they
// do not, so it is kept: a root, and what holds a repository or sources. A strict recorder trusts no mark. dir tells whether it
// is a directory at all.
func (r *Recorder) judge(d key) (is, dir bool) {
	name := d.path[strings.LastIndexByte(d.path, '/')+1:]
	t := r.trees[d.root]
	if d.path == "" || t == nil {
		return false, true
	}
	named, tagged := rebuilt(name), false
	if !named && (r.strict || r.whole) {
		return false, true
	}
	t.mayHave(d.path, func(has func(string) bool) {
		dir = true
		switch {
		case slices.ContainsFunc(repositories, has):
		case named:
			is = true
		case !slices.ContainsFunc(sources, has):
			is, tagged = true, has("CACHEDIR.TAG")
		}
	})
	if !is || named {
		return is, dir
	}
	if tag := d.in("CACHEDIR.TAG"); tagged && t.starts(tag.path, cacheTag) && r.before(tag) {
		return true, dir
	}
	up := d.parent()
	switch {
	case name == "target":
		return r.before(up.in("Cargo.toml")) || r.before(up.in("pom.xml")), dir
	case up.path != "" && slices.Contains(venv, name):
		return !t.any(up.path, repositories) && !t.any(up.path, sources) && r.before(up.in("pyvenv.cfg")), dir
	}
	return false, dir
}

// any reports whether a directory may have one of the names.
func (t *tree) any(path string, names []string) (found bool) {
	t.mayHave(path, func(has func(string) bool) { found = slices.ContainsFunc(names, has) })
	return found
}

// before reports whether a mark is older than this step, and was not made or changed while a step of the journal went on.
func (r *Recorder) before(at key) bool {
	if !r.old(at) {
		return false
	}
	s, err := r.look(at)
	if err != nil || s.Kind != File || !r.forged(&s) {
		return false
	}
	if r.times == nil {
		r.times = r.j.times(r.number)
	}
	near := int64(tick)
	if s.Change%1e9 == 0 {
		near = int64(tickCoarse)
	}
	return !slices.ContainsFunc(r.times, func(during [2]int64) bool { return s.Change >= during[0]-near && s.Change-near <= during[1] })
}

// times lists when the steps of the journal went on, but one. It has at least one entry.
func (j *Journal) times(but int64) [][2]int64 {
	always := [][2]int64{{0, math.MaxInt64}}
	list, err := j.List(context.Background(), Filter{})
	if err != nil {
		return always
	}
	all := make([][2]int64, 1, len(list)+1)
	for i := range list {
		all = append(all, [2]int64{list[i].Begin.UnixNano(), list[i].End.UnixNano()})
	}
	living, err := j.numbers(dirLogs)
	if err != nil {
		return always
	}
	for _, n := range living {
		if n == but {
			continue
		}
		f, err := j.root.OpenFile(logPath(n), os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
		if errors.Is(err, fs.ErrNotExist) {
			return j.times(but) // it ended meanwhile, and has a record now
		}
		if err != nil {
			return always
		}
		var start time.Time
		err = readLog(f, func(h *header) error { start = h.Start; return io.ErrUnexpectedEOF }, nil)
		f.Close()
		if start.IsZero() {
			if !errors.Is(err, io.EOF) {
				return always
			}
			continue // it has not begun
		}
		all = append(all, [2]int64{start.UnixNano(), math.MaxInt64})
	}
	return all
}

// old reports whether a path still has what it had before the step.
func (r *Recorder) old(at key) bool {
	is, was, _ := r.names.find(at)
	return is == original && was == at
}
