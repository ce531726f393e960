package step

import "strings"

// Rebuildable reports whether a path is, or lies in, a directory that tools rebuild, by its names alone: such as
// node_modules. Other directories count by what is in them or beside them: target beside Cargo.toml or pom.xml, virtual
// environments of Python, and directories with a CACHEDIR.TAG.
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
// Marks that this step made do not count, because with them a sandbox could choose what is not kept. With deep false the
// path itself does not count.
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
		_, name := splitPath(d.path)
		if depth++; rebuilt(name) {
			return d, true
		}
		if depth > maxJudged {
			continue
		}
		is, known := r.caches[d]
		if !known {
			is = r.judge(d)
			if r.judged < maxJudgedBytes {
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

// Bounds of looks into directories. Deeper ones count by their names only.
const (
	maxJudged      = 32       // levels
	maxJudgedBytes = 32 << 20 // of memory for what was found
)

// judge looks whether tools rebuild a directory because of what is in it or beside it.
func (r *Recorder) judge(d key) bool {
	t := r.trees[d.root]
	if t == nil {
		return false
	}
	found := false
	t.names(d.path, func(has func(string) bool) {
		if has("pyvenv.cfg") && r.old(d.in("pyvenv.cfg")) {
			found = true
		} else if has("CACHEDIR.TAG") && r.old(d.in("CACHEDIR.TAG")) {
			found = t.starts(d.in("CACHEDIR.TAG").path, cacheTag)
		}
	})
	if _, name := splitPath(d.path); found || name != "target" {
		return found
	}
	up := d.parent()
	t.names(up.path, func(has func(string) bool) {
		found = has("Cargo.toml") && r.old(up.in("Cargo.toml")) || has("pom.xml") && r.old(up.in("pom.xml"))
	})
	return found
}

// old reports whether a path still has what it had before the step.
func (r *Recorder) old(at key) bool {
	is, was, _ := r.names.find(at)
	return is == original && was == at
}

func splitPath(path string) (dir, name string) {
	i := strings.LastIndexByte(path, '/')
	return path[:max(0, i)], path[i+1:]
}
