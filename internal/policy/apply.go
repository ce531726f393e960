package policy

import (
	"fmt"
	"maps"
	"path"
	"slices"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/protect"
)

// Apply puts the file into spec, which holds settings weaker than the file: call it before flags are put into spec.
// Values of the file replace those of spec. Mounts and variables are added, and replace those of the same target and
// name. What the file leaves out stays.
//
// The workspace becomes the first mount, writable, and the working directory. Apply expands globs to the files that
// match now, and "~" to the home.
//
// An error is an [*Error] of kind Invalid with every problem; spec is then unchanged.
func (f *File) Apply(spec *paddock.Spec, o Host) error {
	g, problems := f.resolved(o)
	if len(problems) == 0 {
		problems, _ = g.conflicts()
	}
	if len(problems) == 0 {
		problems = g.expand(o)
	}
	if _, err := protect.New(g.Files.Protect, g.Files.Unprotect); err != nil && len(problems) == 0 {
		problems = append(problems, f.problem("files", err.Error(), ""))
	}
	if len(problems) == 0 && !o.WithoutSecrets {
		problems = g.reveal(o)
	}
	if err := newError(f.Name, paddock.Invalid, problems); err != nil {
		return err
	}
	g.put(spec, o)
	return nil
}

// put copies a resolved file into spec.
func (f *File) put(spec *paddock.Spec, o Host) {
	if f.Tier != paddock.Auto {
		spec.Tier = f.Tier
	}
	if f.says("root") {
		spec.Root = f.Root
	}
	if f.User != "" {
		spec.User = f.User
	}
	mounts := slices.Clone(f.Mounts)
	if f.Workspace != "" {
		mounts = slices.DeleteFunc(mounts, func(m paddock.Mount) bool { return target(m) == f.Workspace })
		mounts = slices.Insert(mounts, 0, paddock.Mount{Source: f.Workspace, Write: true})
		spec.Dir = f.Workspace
	}
	if f.dir != "" {
		spec.Dir = f.dir
	}
	kept := slices.DeleteFunc(slices.Clone(spec.Mounts), func(m paddock.Mount) bool {
		return slices.ContainsFunc(mounts, func(n paddock.Mount) bool { return target(m) == target(n) })
	})
	spec.Mounts = slices.Concat(mounts, kept)
	if len(spec.Mounts) == 0 {
		spec.Mounts = nil
	}
	spec.Env = f.variables(spec.Env, o)
	putLimits(&spec.Limits, f.Limits)
	spec.Policy.Files.DenyRead = union(spec.Policy.Files.DenyRead, f.Files.DenyRead)
	spec.Policy.Files.DenyWrite = union(spec.Policy.Files.DenyWrite, f.Files.DenyWrite)
	spec.Policy.Files.Protect = union(spec.Policy.Files.Protect, f.Files.Protect)
	spec.Policy.Files.Unprotect = union(spec.Policy.Files.Unprotect, f.Files.Unprotect)
	if f.says("network") {
		spec.Policy.Network = paddock.NetworkPolicy{Mode: f.Network.Mode, Rules: slices.Clone(f.Network.Rules), Secrets: slices.Clone(f.Network.Secrets)}
	}
	if f.says("forward_agent") {
		spec.Policy.KeyAgents = slices.Clone(f.KeyAgents)
	}
	spec.Policy.Audit = union(spec.Policy.Audit, f.Audit)
	spec.AllowMissing = union(spec.AllowMissing, f.AllowMissing)
}

// says tells whether the file has the key.
func (f *File) says(key string) bool {
	_, ok := f.at[key]
	return ok
}

func (f *File) variables(have map[string]string, o Host) map[string]string {
	env := maps.Clone(have)
	put := func(name, value string) {
		if env == nil {
			env = map[string]string{}
		}
		env[name] = value
	}
	for name, value := range f.Set {
		put(name, value)
	}
	for _, name := range f.Pass {
		if o.Env == nil {
			break
		}
		if value, ok := o.Env(name); ok {
			put(name, value)
		}
	}
	return env
}

func putLimits(to *paddock.Limits, from paddock.Limits) {
	set := func(to *int64, from int64) {
		if from != 0 {
			*to = from
		}
	}
	set(&to.Memory, from.Memory)
	set(&to.Disk, from.Disk)
	set(&to.IO, from.IO)
	if from.CPUs != 0 {
		to.CPUs = from.CPUs
	}
	if from.PIDs != 0 {
		to.PIDs = from.PIDs
	}
	if from.Files != 0 {
		to.Files = from.Files
	}
	if from.Lifetime != 0 {
		to.Lifetime = from.Lifetime
	}
}

// union gives a and what of b is not in it, in order, without sharing memory.
func union[T comparable](a, b []T) []T {
	all := slices.Clone(a)
	for _, v := range b {
		if !slices.Contains(all, v) {
			all = append(all, v)
		}
	}
	return all
}

// resolved gives a copy with absolute paths.
func (f *File) resolved(o Host) (*File, []Problem) {
	g := *f
	var problems []Problem
	absolute := func(key, p string) string {
		abs, err := resolve(p, o.Home)
		if err != nil {
			problems = append(problems, f.problem(key, err.Error(), ""))
		}
		return abs
	}
	switch f.Workspace {
	case "":
	case ".":
		if !path.IsAbs(o.Dir) {
			problems = append(problems, f.problem("workspace", "the caller's directory is not known", "write the path"))
		}
		g.Workspace = path.Clean(o.Dir)
	default:
		g.Workspace = absolute("workspace", f.Workspace)
	}
	if f.Root.Kind == paddock.RootDir {
		g.Root.Path = absolute("root", f.Root.Path)
	}
	g.Mounts = slices.Clone(f.Mounts)
	for i := range g.Mounts {
		g.Mounts[i].Source = absolute(index("mounts", i), g.Mounts[i].Source)
		if g.Mounts[i].Target != "" {
			g.Mounts[i].Target = absolute(index("mounts", i), g.Mounts[i].Target)
		}
	}
	resolveAll := func(key string, list []string) []string {
		list = slices.Clone(list)
		for i, p := range list {
			list[i] = absolute(index(key, i), p)
		}
		return list
	}
	g.Files.DenyRead = resolveAll("files.deny_read", f.Files.DenyRead)
	g.Files.DenyWrite = resolveAll("files.deny_write", f.Files.DenyWrite)
	return &g, problems
}

// expand puts what they match now in the place of globs, in a resolved file.
func (f *File) expand(o Host) (problems []Problem) {
	for _, l := range []struct {
		key  string
		list *[]string
	}{{"files.deny_read", &f.Files.DenyRead}, {"files.deny_write", &f.Files.DenyWrite}} {
		var paths []string
		for i, p := range *l.list {
			key := index(l.key, i)
			if !f.glob(p) {
				paths = union(paths, []string{p})
				continue
			}
			found, problem := f.expandOne(key, p, o)
			if problem != nil {
				problems = append(problems, *problem)
			}
			paths = union(paths, found)
		}
		*l.list = paths
	}
	return problems
}

// expandOne expands a glob. One that matches nothing is refused: it would be a
// rule that does nothing.
func (f *File) expandOne(key, pattern string, o Host) ([]string, *Problem) {
	if o.Files == nil {
		p := f.problem(key, "a glob, and the files of the host cannot be looked at here", "write the paths")
		return nil, &p
	}
	found, err := expand(o.Files, pattern)
	if err != nil {
		p := f.problem(key, fmt.Sprintf("the glob %s cannot be expanded: %v", pattern, err), "write the paths")
		return nil, &p
	}
	if len(found) == 0 {
		p := f.problem(key, fmt.Sprintf("the glob %s matches nothing now, and a glob stands for what it matches when the sandbox starts", pattern),
			"deny the directory, or for names that commands may not make, use files.protect")
		return nil, &p
	}
	return found, nil
}

// glob tells whether the path of a file rule is a pattern.
func (f *File) glob(p string) bool { return isGlob(p) && !f.literal }
