package policy

import (
	"fmt"
	"path"
	"slices"

	"github.com/paddock-sandbox/paddock"
)

// conflicts tells what in the file contradicts itself, and what is there
// twice or to no effect. It compares paths as they are written, so those of
// Read, which does not know the home, are compared again by Apply.
func (f *File) conflicts() (problems, notes []Problem) {
	m, n := f.mountConflicts()
	problems, notes = append(problems, m...), append(notes, n...)
	m, n = f.networkConflicts()
	problems, notes = append(problems, m...), append(notes, n...)
	for i, text := range f.Files.Unprotect {
		if slices.Contains(f.Files.Protect, text) {
			problems = append(problems, f.problem(index("files.unprotect", i), fmt.Sprintf("%q is protected by files.protect too", text), ""))
		}
	}
	for i, name := range f.Pass {
		if _, ok := f.Set[name]; ok {
			problems = append(problems, f.problem(index("environment.pass", i), name+" is set by environment.set too", ""))
		}
	}
	for _, l := range []struct {
		key  string
		list []string
	}{
		{"files.deny_read", f.Files.DenyRead}, {"files.deny_write", f.Files.DenyWrite}, {"files.protect", f.Files.Protect},
		{"files.unprotect", f.Files.Unprotect}, {"environment.pass", f.Pass}, {"audit", namesOf(f.Audit)},
	} {
		seen := map[string]bool{}
		for i, s := range l.list {
			if seen[s] {
				notes = append(notes, f.problem(index(l.key, i), fmt.Sprintf("%q is listed twice", s), ""))
			}
			seen[s] = true
		}
	}
	return problems, notes
}

func index(key string, i int) string { return fmt.Sprintf("%s[%d]", key, i) }

// target gives where a mount appears.
func target(m paddock.Mount) string {
	if m.Target != "" {
		return m.Target
	}
	return m.Source
}

func (f *File) mountConflicts() (problems, notes []Problem) {
	targets := map[string]int{}
	for i, m := range f.Mounts {
		key := index("mounts", i)
		if path.Clean(target(m)) == "/" && f.Root.Kind != paddock.RootOpen {
			problems = append(problems, f.problem(key, `a mount at "/"`, `the whole tree comes from "root"`))
			continue
		}
		if first, ok := targets[target(m)]; ok {
			problems = append(problems, f.problem(key, fmt.Sprintf("%s is the place of %s already", target(m), index("mounts", first)), `give it another place with "at"`))
		} else {
			targets[target(m)] = i
		}
		if j := covering(target(m), f.Files.DenyRead); j >= 0 {
			problems = append(problems, f.problem(key, fmt.Sprintf("%s can never be seen: files.deny_read denies %s", target(m), f.Files.DenyRead[j]), "a denial wins over any mount; take one of the two away"))
		} else if j := covering(target(m), f.Files.DenyWrite); j >= 0 && m.Write {
			problems = append(problems, f.problem(key, fmt.Sprintf("%s can never be written: files.deny_write denies %s", target(m), f.Files.DenyWrite[j]), `mount it with "read", or deny less`))
		}
	}
	if f.Workspace == "/" && f.Root.Kind != paddock.RootOpen {
		problems = append(problems, f.problem("workspace", `the workspace is "/"`, "work in a directory below it"))
	}
	if f.Workspace != "" && f.Workspace != "." {
		if i, ok := targets[f.Workspace]; ok && !f.Mounts[i].Write {
			problems = append(problems, f.problem(index("mounts", i), f.Workspace+" is the workspace, which is writable, and mounted read-only here", "leave one of the two out"))
		}
		for key, list := range map[string][]string{"files.deny_read": f.Files.DenyRead, "files.deny_write": f.Files.DenyWrite} {
			if j := covering(f.Workspace, list); j >= 0 {
				problems = append(problems, f.problem(index(key, j), fmt.Sprintf("%s denies the whole workspace %s", list[j], f.Workspace), "leave the workspace out, or deny less"))
			}
		}
	}
	for i, p := range f.Files.DenyWrite {
		if j := covering(p, f.Files.DenyRead); j >= 0 {
			notes = append(notes, f.problem(index("files.deny_write", i), fmt.Sprintf("%s has no effect: files.deny_read denies %s, also for writing", p, f.Files.DenyRead[j]), ""))
		}
	}
	return problems, notes
}

// covering gives the first of dirs that name is or is below, or -1. Globs
// stand for what is not known yet.
func covering(name string, dirs []string) int {
	return slices.IndexFunc(dirs, func(dir string) bool { return !isGlob(dir) && within(name, dir) })
}
